/* Sorts words, counts them, and prints a few of them: a small program with a main, branches, calls and memory. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 20000, LENGTH = 12 };

static uint64_t state = 88172645463325252u;

static uint32_t draw(uint32_t bound) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)((state >> 32) % bound);
}

static void make(char *word) {
    uint32_t length = 2 + draw(3);
    for (uint32_t i = 0; i < length; i++) word[i] = (char)('a' + draw(9));
    word[length] = 0;
}

static void merge(char **words, char **spare, int low, int high) {
    if (high - low < 2) return;
    int middle = (low + high) / 2, left = low, right = middle;
    merge(words, spare, low, middle);
    merge(words, spare, middle, high);
    for (int i = low; i < high; i++) {
        int from_left = left < middle && (right >= high || strcmp(words[left], words[right]) <= 0);
        spare[i] = words[from_left ? left++ : right++];
    }
    memcpy(words + low, spare + low, (size_t)(high - low) * sizeof *words);
}

static uint32_t hash(const char *word) {
    uint32_t value = 2166136261u;
    for (; *word; word++) value = (value ^ (unsigned char)*word) * 16777619u;
    return value;
}

int main(void) {
    static char storage[WORDS][LENGTH];
    static char *words[WORDS], *spare[WORDS];
    uint64_t sum = 0;
    int distinct = 0;
    for (int i = 0; i < WORDS; i++) make(words[i] = storage[i]);
    merge(words, spare, 0, WORDS);
    for (int i = 0; i < WORDS; i++) {
        distinct += i == 0 || strcmp(words[i], words[i - 1]) != 0;
        for (int round = 0; round < 20; round++) sum = sum * 31 + (hash(words[i]) ^ (uint32_t)round);
    }
    printf("%d words, %d distinct, checksum %llu\n", WORDS, distinct, (unsigned long long)sum);
    for (int i = 0; i < WORDS; i += WORDS / 5) printf("%s\n", words[i]);
    return 0;
}
