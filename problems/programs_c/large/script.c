/* A small language: a tokenizer, a compiler by recursive descent with folding of constants, and its virtual machine. */
typedef unsigned long long u64;
typedef long long i64;
typedef unsigned char u8;

enum { CODE = 600, VARIABLES = 26, DEPTH = 64, FUEL = 6000 };
enum { PUSH, LOAD, STORE, ADD, SUB, MUL, DIV, MOD, LESS, EQUAL, AND, OR, NOT, NEG, JUMP, ZERO, CALL, BACK, PRINT, FETCH, PUT, HALT };
enum { END, VALUE, NAME, WORD, SIGN };
enum { IF, ELSE, WHILE, DEF, RETURN, SHOW, NO_WORD };

static const char *const words[] = {"if", "else", "while", "def", "return", "show"};
static const char *const sources[] = {
    "i = 2; while (i < 60) { p = 1; j = 2; while (j * j < i + 1) { if (i % j == 0) { p = 0; } j = j + 1; }"
    " if (p) { show i; } i = i + 1; }",
    "def f { if (n < 2) { return 1; } n = n - 1; a = n * 3 % 7; f(); return a + n; } n = 12 + x; show f(); show n;",
    "a = x + 40; b = 18; while (b) { t = a % b; a = b; b = t; } show a; show -(2 + 3 * 4) == 0 - 14;",
    "i = 0; while (i < 30) { [i] = i * i % 17; i = i + 1; } i = 0; s = 0; while (i < 29) { j = 0; while (j < 29 - i)"
    " { if ([j + 1] < [j]) { t = [j]; [j] = [j + 1]; [j + 1] = t; s = s + 1; } j = j + 1; } i = i + 1; }"
    " show s; show [0] + [15] * 100 + [29] * 10000;",
    "c = 0; n = 27 + x; while (!(n == 1)) { if (n % 2 & 1) { n = 3 * n + 1; } else { n = n / 2; } c = c + 1; } show c;",
};

static const char *source;
static int kind, word, sign, length, failed;
static i64 value;
static u8 codes[CODE];
static i64 arguments[CODE];
static int functions[VARIABLES];
static i64 variables[VARIABLES], memory[32], stack[DEPTH];
static int returns[DEPTH];

static int letter(int c) { return c >= 'a' && c <= 'z'; }

static int digit(int c) { return c >= '0' && c <= '9'; }

static int is_word(const char *name, int n) {
    int i = 0;
    while (i < n && name[i] && name[i] == source[i]) i++;
    return i == n && !name[i];
}

static void advance(void) {
    while (*source == ' ') source++;
    kind = SIGN;
    if (!*source) {
        kind = END;
    } else if (digit(*source)) {
        kind = VALUE;
        for (value = 0; digit(*source); source++) value = value * 10 + (*source - '0');
    } else if (letter(*source)) {
        int n = 0;
        while (letter(source[n])) n++;
        for (word = IF; word < NO_WORD && !is_word(words[word], n); word++) {}
        kind = word == NO_WORD ? NAME : WORD;
        value = *source - 'a';
        source += n;
    } else {
        sign = *source++;
        if (sign == '=' && *source == '=') sign = 'e', source++;
    }
}

static int taken(int wanted) {
    if (kind != SIGN || sign != wanted) return 0;
    advance();
    return 1;
}

static void need(int wanted) {
    if (!taken(wanted)) failed = 1;
}

static int emit(int code, i64 argument) {
    if (length == CODE) {
        failed = 1;
        return 0;
    }
    codes[length] = (u8)code;
    arguments[length] = argument;
    return length++;
}

static i64 compute(int code, i64 a, i64 b) {
    switch (code) {
    case ADD: return (i64)((u64)a + (u64)b);
    case SUB: return (i64)((u64)a - (u64)b);
    case MUL: return (i64)((u64)a * (u64)b);
    case DIV: return b > 0 ? a / b : 0;
    case MOD: return b > 0 ? a % b : 0;
    case LESS: return a < b;
    case EQUAL: return a == b;
    case AND: return a && b;
    default: return a || b;
    }
}

static void binary(int code) {
    if (length > 1 && codes[length - 1] == PUSH && codes[length - 2] == PUSH) {
        arguments[length - 2] = compute(code, arguments[length - 2], arguments[length - 1]);
        length--;
    } else {
        emit(code, 0);
    }
}

static void unary(int code) {
    if (length && codes[length - 1] == PUSH) {
        i64 *last = &arguments[length - 1];
        *last = code == NEG ? (i64)(0 - (u64)*last) : !*last;
    } else {
        emit(code, 0);
    }
}

static void expression(void);

static void primary(void) {
    if (taken('(')) {
        expression();
        need(')');
    } else if (taken('[')) {
        expression();
        need(']');
        emit(FETCH, 0);
    } else if (taken('-')) {
        primary();
        unary(NEG);
    } else if (taken('!')) {
        primary();
        unary(NOT);
    } else if (kind == VALUE) {
        emit(PUSH, value);
        advance();
    } else if (kind == NAME) {
        i64 name = value;
        advance();
        if (taken('(')) {
            need(')');
            emit(CALL, name);
        } else {
            emit(LOAD, name);
        }
    } else {
        failed = 1;
    }
}

static void product(void) {
    primary();
    while (!failed) {
        int code = taken('*') ? MUL : taken('/') ? DIV : taken('%') ? MOD : -1;
        if (code < 0) return;
        primary();
        binary(code);
    }
}

static void sum(void) {
    product();
    while (!failed) {
        int code = taken('+') ? ADD : taken('-') ? SUB : -1;
        if (code < 0) return;
        product();
        binary(code);
    }
}

static void comparison(void) {
    sum();
    int code = taken('<') ? LESS : taken('e') ? EQUAL : -1;
    if (code < 0) return;
    sum();
    binary(code);
}

static void expression(void) {
    comparison();
    while (!failed) {
        int code = taken('&') ? AND : taken('|') ? OR : -1;
        if (code < 0) return;
        comparison();
        binary(code);
    }
}

static void statement(void);

static void block(void) {
    need('{');
    while (!failed && !taken('}')) statement();
}

static void condition(void) {
    need('(');
    expression();
    need(')');
}

static void branch(void) {
    condition();
    int skip = emit(ZERO, 0);
    block();
    if (kind == WORD && word == ELSE) {
        advance();
        int over = emit(JUMP, 0);
        arguments[skip] = length;
        block();
        skip = over;
    }
    arguments[skip] = length;
}

static void loop(void) {
    int start = length;
    condition();
    int leave = emit(ZERO, 0);
    block();
    emit(JUMP, start);
    arguments[leave] = length;
}

static void define(void) {
    i64 name = value;
    if (kind != NAME) failed = 1;
    advance();
    int over = emit(JUMP, 0);
    functions[name] = length;
    block();
    emit(PUSH, 0);
    emit(BACK, 0);
    arguments[over] = length;
}

static void assignment(void) {
    if (taken('[')) {
        expression();
        need(']');
        need('=');
        expression();
        emit(PUT, 0);
    } else {
        i64 name = value;
        if (kind != NAME) failed = 1;
        advance();
        if (taken('(')) {
            need(')');
            emit(CALL, name);
            name = VARIABLES - 1;
        } else {
            need('=');
            expression();
        }
        emit(STORE, name);
    }
    need(';');
}

static void statement(void) {
    int found = kind == WORD ? word : NO_WORD;
    if (found != NO_WORD) advance();
    switch (found) {
    case IF: branch(); return;
    case WHILE: loop(); return;
    case DEF: define(); return;
    case RETURN: expression(); emit(BACK, 0); need(';'); return;
    case SHOW: expression(); emit(PRINT, 0); need(';'); return;
    default: assignment();
    }
}

static void compile(const char *text) {
    source = text;
    length = failed = 0;
    for (int i = 0; i < VARIABLES; i++) functions[i] = 0;
    advance();
    while (kind != END && !failed) statement();
    emit(HALT, 0);
}

static void thread_jumps(void) {
    for (int i = 0; i < length; i++) {
        if (codes[i] != JUMP && codes[i] != ZERO) continue;
        for (int n = 0; n < 8 && codes[arguments[i]] == JUMP; n++) arguments[i] = arguments[arguments[i]];
    }
}

static u64 execute(i64 x) {
    int top = 1, depth = 0, at = 0;
    u64 shown = 0;
    for (int i = 0; i < VARIABLES; i++) variables[i] = 0;
    for (int i = 0; i < 32; i++) memory[i] = 0;
    variables['x' - 'a'] = x;
    for (int fuel = FUEL; fuel && top > 0 && top < DEPTH - 2 && depth < DEPTH - 1; fuel--) {
        i64 argument = arguments[at], a = top > 1 ? stack[top - 2] : 0, b = stack[top - 1];
        int code = codes[at++];
        switch (code) {
        case PUSH: stack[top++] = argument; break;
        case LOAD: stack[top++] = variables[argument]; break;
        case STORE: variables[argument] = b, top--; break;
        case NOT: stack[top - 1] = !b; break;
        case NEG: stack[top - 1] = (i64)(0 - (u64)b); break;
        case JUMP: at = (int)argument; break;
        case ZERO: if (!b) at = (int)argument; top--; break;
        case CALL: returns[depth++] = at, at = functions[argument]; break;
        case BACK: if (!depth) return shown; at = returns[--depth]; break;
        case PRINT: shown = shown * 1000003 + (u64)b, top--; break;
        case FETCH: stack[top - 1] = memory[(u64)b % 32]; break;
        case PUT: memory[(u64)a % 32] = b, top -= 2; break;
        case HALT: return shown;
        default: stack[--top - 1] = compute(code, a, b);
        }
    }
    return shown + 1;
}

u64 run(u64 seed) {
    u64 checked = 0;
    stack[0] = 0;
    for (int i = 0; i < 5; i++) {
        compile(sources[i]);
        checked = checked * 31 + (u64)length * 2 + (u64)failed;
        thread_jumps();
        for (i64 x = 0; x < 3; x++) checked = checked * 1000003 + execute(x + (i64)(seed % 11));
    }
    return checked;
}
