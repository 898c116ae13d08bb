
#include <stdio.h>
#include <stdlib.h>
unsigned long long run(unsigned long long);
int main(int count, char **words) {
    for (int i = 1; i < count; i++) printf("%llu ", run(strtoull(words[i], 0, 10)));
    return fflush(stdout) ? 1 : 42;
}
