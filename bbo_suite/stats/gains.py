"""From where on a gain over the default is one."""

LEAST_GAIN = 1e-4
"""Of a smaller best gain no part is told: one of 0.00002 % would make its finder 100 % and all others 0 %."""

LEAST_WORDS = f"{100 * LEAST_GAIN:g} %"
