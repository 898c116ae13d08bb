/* Runs a program of problems/programs_c, which is included, often enough for its time to be seen. */
#include <stdint.h>
#include PROGRAM
#include <stdio.h>

const volatile char salt[] = SALT; /* loaded, and read by nothing: another code of the same speed */

int main(void) {
    uint64_t sum = 0;
    for (uint64_t i = 1; i <= REPEATS; i++) sum = sum * 31 + run(i);
    printf("%llu\n", (unsigned long long)sum);
    return 0;
}
