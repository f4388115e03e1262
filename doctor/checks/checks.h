// The checks, by subject. Each appends its lines; one that has nothing to look at appends none.
#pragma once

#include "doctor/facts.h"

namespace devsan::doctor {

void check_driver(const Facts& facts, Diagnosis& diagnosis);
void check_wsl(const Facts& facts, Diagnosis& diagnosis);
void check_visible_devices(const Facts& facts, Diagnosis& diagnosis);
void check_mig(const Facts& facts, Diagnosis& diagnosis);

void check_torch(const Facts& facts, Diagnosis& diagnosis);
void check_torch_driver(const Facts& facts, Diagnosis& diagnosis);
void check_arch_list(const Facts& facts, Diagnosis& diagnosis);
void check_cuda_libraries(const Facts& facts, Diagnosis& diagnosis);
void check_nccl(const Facts& facts, Diagnosis& diagnosis);
void check_toolkit(const Facts& facts, Diagnosis& diagnosis);
void check_hooks(const Facts& facts, Diagnosis& diagnosis);
void check_known_bugs(const Facts& facts, Diagnosis& diagnosis);

void check_limits(const Facts& facts, Diagnosis& diagnosis);

void check_deepspeed_file(const Facts& facts, Diagnosis& diagnosis);
void check_deepspeed_keys(const Facts& facts, Diagnosis& diagnosis);
void check_deepspeed_batch(const Facts& facts, Diagnosis& diagnosis);
void check_deepspeed_precision(const Facts& facts, Diagnosis& diagnosis);
void check_deepspeed_offload(const Facts& facts, Diagnosis& diagnosis);
void check_deepspeed_nvme(const Facts& facts, Diagnosis& diagnosis);
void check_deepspeed_options(const Facts& facts, Diagnosis& diagnosis);
void check_deepspeed_auto(const Facts& facts, Diagnosis& diagnosis);

void check_accelerate(const Facts& facts, Diagnosis& diagnosis);
// Parts of check_accelerate, which has looked whether there is a config that can be read.
void check_accelerate_values(const Facts& facts, Diagnosis& diagnosis);
void check_processes(const Facts& facts, Diagnosis& diagnosis);
void check_fsdp(const Facts& facts, Diagnosis& diagnosis);
void check_parallelism(const Facts& facts, Diagnosis& diagnosis);
void check_configs_agree(const Facts& facts, Diagnosis& diagnosis);

void check_memory(const Facts& facts, Diagnosis& diagnosis);

}  // namespace devsan::doctor
