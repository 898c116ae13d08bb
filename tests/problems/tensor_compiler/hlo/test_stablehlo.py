"""Names of instructions: those of the user's StableHLO text."""

from bbo_problems.tensor_compiler.hlo import reader

TEXT = """#loc1 = loc("jit(f)/dot_general"(callsite("f"("a.py":4:13) at "<module>"("a.py":9:4))))
module @jit_f {
  func.func public @main(%arg0: tensor<8x8xf32> loc("x")) -> tensor<8x8xf32> {
    %0 = stablehlo.dot_general %arg0, %arg0, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc(#loc1)
    %sum = stablehlo.add %0, %arg0 : tensor<8x8xf32> loc("loc(deep)")
    %2 = call @relu(%sum) : (tensor<8x8xf32>) -> tensor<8x8xf32> loc(unknown)
    return %2 : tensor<8x8xf32>
  }
  func.func private @relu(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> {
    %0 = stablehlo.abs %arg0 : tensor<8x8xf32>
    return %0 : tensor<8x8xf32>
  }
}
"""  # noqa: E501


def test_instructions_have_the_names_of_the_text():
    module = reader.parse(TEXT)
    names = {each.opcode: each.name for c in module.computations.values() for each in c.instructions}
    assert {opcode: names[opcode] for opcode in ("dot", "add", "call", "abs")} == {
        "dot": "%0", "add": "%sum", "call": "%2", "abs": "@relu/%0",
    }  # fmt: skip
