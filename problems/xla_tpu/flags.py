"""The compiler's flags that a search may set: publicly documented flags for performance.

About seventy such flags were tried. Those that change the estimate of small programs are here, and some that only
change the code. Flags that choose the compiler's cost model are left out, because they change what is measured. Values
are around the published ones. The compiler's own value is the first, or in its place on a scale.

Where a flag is documented:
O  https://openxla.org/xla/flags_guidance
M  MaxText, the flags that it lists as autotuned and those of its run scripts, https://github.com/AI-Hypercomputer/maxtext
S  the flags of serving in Saxml, https://github.com/google/saxml
"""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT = "default"
"""The value of a flag that is not set."""


@dataclass(frozen=True)
class Flag:
    """A flag; its `values` are texts, those of an ordered flag from small to large."""

    name: str
    values: tuple[str, ...]
    ordered: bool = False


def _off(name: str) -> Flag:
    return Flag(name, (DEFAULT, "false"))


def _on(name: str) -> Flag:
    return Flag(name, (DEFAULT, "true"))


def _scale(name: str, *values: str) -> Flag:
    return Flag(name, values, ordered=True)


FLAGS = (
    _scale(
        "xla_tpu_scoped_vmem_limit_kib", "4096", "8192", "12288", DEFAULT, "24576", "32768", "65536", "98304"
    ),  # O M S
    _off("xla_tpu_dot_dot_fusion"),  # O M S
    _on("xla_tpu_dot_dot_fusion_duplicated"),  # M S
    _on("xla_tpu_dot_dot_fusion_separable_convs_only"),  # M
    _off("xla_jf_enable_multi_output_fusion"),  # O M
    _off("xla_tpu_rwb_fusion"),  # O M S
    _off("xla_jf_conv_input_fusion"),  # M
    _off("xla_jf_conv_output_fusion"),  # M S
    _scale("xla_tpu_copy_fusion_pad_unpad_ratio", "0", "5.7", DEFAULT, "183"),  # M S
    _scale("xla_tpu_async_copy_bandwidth_scaling_factor", "0.05", "0.3", "0.7", DEFAULT, "1.5", "3"),  # O M S
    _on("xla_tpu_enforce_prefetch_fifo_order"),  # M S
    _scale("xla_tpu_prefetch_interval_picker_size_override", DEFAULT, "20000", "100000", "963616", "405728676"),  # M S
    _scale("xla_vf_vmem_max_outstanding_prefetches", "1", "4", "11", DEFAULT, "143"),  # S
    _scale("xla_vf_vmem_min_overlap_to_async_copy_ratio", "0.1", "0.19", "0.5", DEFAULT, "1.5"),  # S
    _scale("xla_vf_vmem_preferred_overlap_to_async_copy_ratio", "0.002", DEFAULT, "3.3", "8.3"),  # S
    _scale("xla_vf_vmem_max_overlap_to_mem_size_async_copy_ratio", "0.0047", "0.1", DEFAULT, "16"),  # S
    _on("xla_tpu_scavenge_vmem_for_fusions"),  # M
    Flag("xla_memory_scheduler", (DEFAULT, "list", "dfs", "post_order")),  # O
    _off("xla_tpu_order_dot_after_layout"),  # M S
    _on("xla_tpu_enable_aggressive_broadcast_priority_update"),  # M S
    _scale("xla_tpu_vector_load_fusion_window", "64", "555", DEFAULT, "2246"),  # M S
    _on("xla_tpu_use_lp_llo_scheduler_for_dot_dot_fusions"),  # M
    _on("xla_tpu_prefer_latch_optimized_rhs_layouts"),  # M
)
