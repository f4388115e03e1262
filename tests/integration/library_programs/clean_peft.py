"""peft: a LoRA adapter is trained beside frozen weights, evaluated, and merged into them."""

import peft
import torch
from clean_parts import STEPS
from library_report import small_llama, token_rows


def evaluate(model, rows):
    model.eval()
    with torch.no_grad():
        total = sum(model(input_ids=row.cuda(), labels=row.cuda()).loss.item() for row in rows)
    model.train()
    print(f"evaluation: {total / len(rows):.3f}")


def main():
    config = peft.LoraConfig(task_type="CAUSAL_LM", r=4, target_modules=["q_proj", "v_proj"],
                             modules_to_save=["lm_head"])
    model = peft.get_peft_model(small_llama(), config).cuda()
    optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=1e-3)
    rows = token_rows(STEPS).split(1)
    for row in rows:
        optimizer.zero_grad()
        model(input_ids=row.cuda(), labels=row.cuda()).loss.backward()
        optimizer.step()
    evaluate(model, rows)
    evaluate(model.merge_and_unload(), rows)


main()
