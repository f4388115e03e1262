"""ProcessGroupNCCL.Options: what a program sets is kept and can be read; a simulated group has no use for it."""

import copy
import datetime

TIMEOUT = datetime.timedelta(minutes=10)
UNDEFINED = -(2**31)  # NCCL_CONFIG_UNDEF_INT


class NCCLConfig:
    """ncclConfig_t: other attributes cannot be set, as in a build with CUDA."""

    __slots__ = ("blocking", "cga_cluster_size", "collnet_enable", "comm_name", "cta_policy", "max_ctas", "max_p2p_peers",
                 "min_ctas", "net_name", "nvls_ctas", "shrink_share", "split_share", "traffic_class")

    def __init__(self):
        for name in self.__slots__:
            setattr(self, name, None if name.endswith("_name") else UNDEFINED)


def options_type(c10d):
    class NcclOptions(c10d.Backend.Options):
        def __init__(self, is_high_priority_stream=False):
            super().__init__("nccl", TIMEOUT)
            self.is_high_priority_stream = is_high_priority_stream
            self.config = NCCLConfig()
            self.split_from = None
            self.split_color = UNDEFINED

        def __deepcopy__(self, memo):
            made = NcclOptions(self.is_high_priority_stream)
            made._timeout = self._timeout
            made.config = copy.copy(self.config)
            made.split_from, made.split_color = self.split_from, self.split_color
            return made

        def __copy__(self):
            return self.__deepcopy__({})

    return NcclOptions
