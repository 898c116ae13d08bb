/* Distances between words: Levenshtein in two rows, with transpositions, banded, Jaro, soundex. */
typedef unsigned long long u64;
typedef unsigned int u32;

enum { WORDS = 9, LONGEST = 12 };

static char words[WORDS][LONGEST + 1];
static int lengths[WORDS], table[LONGEST + 2][LONGEST + 2];

static int least(int a, int b, int c) {
    int m = a < b ? a : b;
    return m < c ? m : c;
}

static int two_rows(const char *a, int n, const char *b, int m) {
    int rows[2][LONGEST + 1];
    for (int j = 0; j <= m; j++) rows[0][j] = j;
    for (int i = 1; i <= n; i++) {
        int *before = rows[(i - 1) & 1], *now = rows[i & 1];
        now[0] = i;
        for (int j = 1; j <= m; j++)
            now[j] = least(before[j] + 1, now[j - 1] + 1, before[j - 1] + (a[i - 1] != b[j - 1]));
    }
    return rows[n & 1][m];
}

static int transposed(const char *a, int n, const char *b, int m) {
    for (int i = 0; i <= n; i++) table[i][0] = i;
    for (int j = 0; j <= m; j++) table[0][j] = j;
    for (int i = 1; i <= n; i++)
        for (int j = 1; j <= m; j++) {
            int cost = a[i - 1] != b[j - 1];
            table[i][j] = least(table[i - 1][j] + 1, table[i][j - 1] + 1, table[i - 1][j - 1] + cost);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && table[i - 2][j - 2] + 1 < table[i][j])
                table[i][j] = table[i - 2][j - 2] + 1;
        }
    return table[n][m];
}

static int banded(const char *a, int n, const char *b, int m, int limit) {
    if (n - m > limit || m - n > limit) return limit + 1;
    int row[LONGEST + 1];
    for (int j = 0; j <= m; j++) row[j] = j <= limit ? j : limit + 1;
    for (int i = 1; i <= n; i++) {
        int corner = row[0], from = i - limit > 1 ? i - limit : 1, to = i + limit < m ? i + limit : m;
        row[0] = i;
        if (from > 1) corner = row[from - 1], row[from - 1] = limit + 1;
        for (int j = from; j <= to; j++) {
            int up = j == i + limit ? limit + 1 : row[j], kept = row[j];
            row[j] = least(up + 1, row[j - 1] + 1, corner + (a[i - 1] != b[j - 1]));
            corner = kept;
        }
    }
    return row[m] <= limit ? row[m] : limit + 1;
}

static u32 jaro(const char *a, int n, const char *b, int m) {
    u32 used_a = 0, used_b = 0, matches = 0, turned = 0;
    int window = (n > m ? n : m) / 2 - 1;
    for (int i = 0; i < n; i++)
        for (int j = i - window > 0 ? i - window : 0; j < m && j <= i + window; j++)
            if (!(used_b >> j & 1) && a[i] == b[j]) {
                used_a |= 1u << i, used_b |= 1u << j;
                matches++;
                break;
            }
    if (!matches) return 0;
    for (int i = 0, j = 0; i < n; i++)
        if (used_a >> i & 1) {
            while (!(used_b >> j & 1)) j++;
            turned += a[i] != b[j++];
        }
    return (matches * 1000 / (u32)n + matches * 1000 / (u32)m + (matches - turned / 2) * 1000 / matches) / 3;
}

static u32 soundex(const char *s) {
    static const char codes[] = "01230120022455012623010202";
    u32 code = (u32)s[0], digits = 0;
    for (char last = codes[s[0] - 'a']; *s && digits < 3; s++) {
        char c = codes[*s - 'a'];
        if (c != '0' && c != last) code = code << 4 | (u32)(c - '0'), digits++;
        last = c;
    }
    return code << 4 * (3 - digits);
}

u64 run(u64 seed) {
    u64 state = seed, sum = 0;
    for (int w = 0; w < WORDS; w++) {
        lengths[w] = 5 + w % (LONGEST - 4);
        for (int i = 0; i < lengths[w]; i++) {
            state = state * 6364136223846793005ull + 1442695040888963407ull;
            words[w][i] = (char)('a' + (state >> 40) % (w % 2 ? 5 : 26));
        }
        words[w][lengths[w]] = 0;
        sum = sum * 31 + soundex(words[w]);
    }
    for (int i = 0; i < WORDS; i++)
        for (int j = 0; j < WORDS; j++) {
            const char *a = words[i], *b = words[j];
            int n = lengths[i], m = lengths[j], exact = two_rows(a, n, b, m), near = banded(a, n, b, m, 4);
            sum = sum * 31 + (u64)exact + (u64)transposed(a, n, b, m) * 16 + (u64)((exact <= 4 ? exact : 5) == near) * 256;
            sum = sum * 31 + jaro(a, n, b, m);
        }
    return sum;
}
