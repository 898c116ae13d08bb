/* A lexer of a small language on a text that it makes up: names, keywords, numbers, operators, comments. */
typedef unsigned long long u64;
typedef unsigned int u32;

enum { LENGTH = 4000, END = 0, NAME, KEYWORD, NUMBER, OPERATOR, STRING, BAD };

static char text[LENGTH + 1];
static const char *const words[] = {"if", "else", "while", "return", "let", "fn", "x1", "count", "total", "index"};
static const char *const marks[] = {"+", "-", "==", "<=", "(", ")", "{", "}", ";", "&&", " // note\n", "\"s\\\"t\""};

static int is_letter(int c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static int is_digit(int c) { return c >= '0' && c <= '9'; }

static int equal(const char *a, const char *b, int n) {
    for (int i = 0; i < n; i++)
        if (a[i] != b[i]) return 0;
    return b[n] == 0;
}

static int keyword(const char *s, int n) {
    for (int i = 0; i < 6; i++)
        if (equal(s, words[i], n)) return 1;
    return 0;
}

static int token(const char **cursor, u32 *value) {
    const char *s = *cursor;
    for (;;) {
        while (*s == ' ' || *s == '\n') s++;
        if (s[0] != '/' || s[1] != '/') break;
        while (*s && *s != '\n') s++;
    }
    const char *start = s;
    int kind = OPERATOR;
    *value = 0;
    if (!*s) {
        kind = END;
    } else if (is_letter(*s)) {
        for (; is_letter(*s) || is_digit(*s); s++) *value = *value * 31 + (u32)*s;
        kind = keyword(start, (int)(s - start)) ? KEYWORD : NAME;
    } else if (is_digit(*s)) {
        for (; is_digit(*s); s++) *value = *value * 10 + (u32)(*s - '0');
        kind = NUMBER;
    } else if (*s == '"') {
        for (s++; *s && *s != '"'; s++)
            if (*s == '\\' && s[1]) *value += (u32) * ++s;
        kind = *s ? STRING : BAD;
        if (*s) s++;
    } else {
        switch (*s) {
        case '=': case '<': case '>': case '!':
            *value = (u32)*s++;
            if (*s == '=') *value = *value << 8 | (u32)*s++;
            break;
        case '&': case '|':
            *value = (u32)*s;
            s += s[1] == s[0] ? 2 : 1;
            break;
        default: *value = (u32)*s++;
        }
    }
    *cursor = s;
    return kind;
}

static char *append(char *out, const char *s) {
    while (*s) *out++ = *s++;
    return out;
}

u64 run(u64 seed) {
    char *out = text;
    u64 state = seed * 2862933555777941757ull + 3037000493ull, sum = 0;
    while (out < text + LENGTH - 24) {
        state = state * 2862933555777941757ull + 3037000493ull;
        u32 choice = (u32)(state >> 40);
        if (choice % 3 == 0) out = append(out, words[choice / 3 % 10]);
        if (choice % 3 == 1) out = append(out, marks[choice / 3 % 12]);
        if (choice % 3 == 2)
            for (u32 n = choice >> 4; n; n /= 10) *out++ = (char)('0' + n % 10);
        *out++ = ' ';
    }
    *out = 0;
    const char *cursor = text;
    u32 value;
    for (int kind; (kind = token(&cursor, &value)) != END;) sum = sum * 1099511628211ull + value * 8 + (u32)kind;
    return sum;
}
