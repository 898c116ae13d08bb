/* Strings: search by Knuth-Morris-Pratt and by Horspool, numbers to text and back, words counted and turned round. */
typedef unsigned long long u64;
typedef unsigned int u32;
typedef unsigned char u8;

enum { LENGTH = 1500 };

static char text[LENGTH + 1], copy[LENGTH + 1];
static int border[16], skip[256];

static int length(const char *s) {
    int n = 0;
    while (s[n]) n++;
    return n;
}

static int kmp(const char *pattern) {
    int m = length(pattern), found = 0;
    border[0] = 0;
    for (int i = 1, k = 0; i < m; i++) {
        while (k && pattern[i] != pattern[k]) k = border[k - 1];
        if (pattern[i] == pattern[k]) k++;
        border[i] = k;
    }
    for (int i = 0, k = 0; text[i]; i++) {
        while (k && text[i] != pattern[k]) k = border[k - 1];
        if (text[i] == pattern[k]) k++;
        if (k == m) {
            found += i;
            k = border[k - 1];
        }
    }
    return found;
}

static int horspool(const char *pattern) {
    int m = length(pattern), n = length(text), found = 0;
    for (int c = 0; c < 256; c++) skip[c] = m;
    for (int i = 0; i < m - 1; i++) skip[(u8)pattern[i]] = m - 1 - i;
    for (int at = 0; at + m <= n; at += skip[(u8)text[at + m - 1]]) {
        int i = m;
        while (i && text[at + i - 1] == pattern[i - 1]) i--;
        if (!i) found += at + m - 1;
    }
    return found;
}

static int print(char *out, long value, int base) {
    char digits[24];
    int n = 0, at = 0;
    u64 rest = value < 0 ? 0 - (u64)value : (u64)value;
    do digits[n++] = "0123456789abcdef"[rest % (u64)base];
    while (rest /= (u64)base);
    if (value < 0) out[at++] = '-';
    while (n) out[at++] = digits[--n];
    out[at] = 0;
    return at;
}

static long scan(const char *s, int base) {
    int negative = *s == '-';
    long value = 0;
    for (s += negative; *s; s++) value = value * base + (*s <= '9' ? *s - '0' : *s - 'a' + 10);
    return negative ? -value : value;
}

static void reverse(char *from, char *to) {
    while (from < --to) {
        char t = *from;
        *from++ = *to;
        *to = t;
    }
}

static int turn_words(char *s) {
    int words = 0;
    while (*s) {
        while (*s == ' ') s++;
        char *start = s;
        while (*s && *s != ' ') s++;
        if (s > start) words++;
        reverse(start, s);
    }
    return words;
}

u64 run(u64 seed) {
    u64 state = seed, sum = 0;
    for (int i = 0; i < LENGTH; i++) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        text[i] = "aabbbc  "[state >> 61];
    }
    static const char *const patterns[] = {"abab", "bb", "a b", "abba", "ccb", "bbbbb"};
    for (int i = 0; i < 6; i++) sum = sum * 31 + (u64)kmp(patterns[i]) * 3 + (u64)horspool(patterns[i]);
    for (int i = 0; i < 40; i++) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        long number = (long)(state >> 20) * (i % 2 ? 1 : -1);
        int base = i % 3 ? 10 : 16;
        sum = sum * 31 + (u64)print(copy, number, base) + (u64)(scan(copy, base) != number) * 77;
    }
    for (int i = 0; i <= LENGTH; i++) copy[i] = text[i];
    sum = sum * 31 + (u64)turn_words(copy);
    for (int i = 0; i < LENGTH; i++) sum = sum * 31 + (u8)copy[i];
    return sum;
}
