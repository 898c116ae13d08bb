"""A fake compiler that misbehaves; the flag that is set says how."""

import os
import time

from bbo_problems.tensor_compiler.calibration.estimates import Estimates
from bbo_problems.xla_tpu.decisions import Decisions, Description, Value
from bbo_problems.xla_tpu.worker import DESCRIBE, ESTIMATE, cost_and_remark, parts_of
from bbo_suite.supervised import PARTS

DEFAULT = Estimates(1000.0, 100.0, 50.0)
OTHERS = {
    "xla_tpu_dot_dot_fusion": Estimates(900.0, 100.0, 60.0),
    "xla_tpu_rwb_fusion": Estimates(500.0, 120.0, 50.0, kernels=(("a", b"", 2.0, 200.0), ("b", b"", 1.0, 100.0))),
    "xla_jf_conv_input_fusion": Estimates(1500.0, 120.0, 50.0),
    "xla_jf_conv_output_fusion": Estimates(10.0, 100.0, 50.0, unknown_loops=1),
}


def serve(path, name, machine):
    """Return the handler; a function called `gone` kills its process."""
    if name == "gone":
        os.abort()
    array = Value("x", (8, 128), "float32")
    ends = (Value("argument", (8, 128), "float32"),), (Value("result", (8, 128), "float32"),)
    description = Description(*ends, (array,), ((0, 1), (1, 2)), "digest")

    def handler(request, enter):
        if request == DESCRIBE:
            return description
        told = isinstance(request, tuple) and request[0] == PARTS
        request = request[1] if told else request
        if isinstance(request, tuple):
            assert request[0] == ESTIMATE
            return DEFAULT
        enter("compile", 0.5)
        flags = dict(request.flags)
        if "xla_tpu_enforce_prefetch_fifo_order" in flags:
            os.abort()
        if "xla_tpu_scavenge_vmem_for_fusions" in flags:
            time.sleep(60)
        if "xla_tpu_order_dot_after_layout" in flags:
            bytearray(1 << 36)
        if "xla_memory_scheduler" in flags:
            raise RuntimeError("UNIMPLEMENTED: no such scheduler")
        found = next((OTHERS[name] for name in OTHERS if name in flags), DEFAULT)
        assert found is not DEFAULT or request == Decisions()
        outcome = cost_and_remark(found, DEFAULT)
        return (outcome, parts_of(found, outcome[0])) if told else outcome

    return handler
