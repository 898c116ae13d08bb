/* Sudoku: candidates in bit masks, singles by propagation, then the cell with the fewest choices. */
typedef unsigned long long u64;
typedef unsigned int u32;

enum { ALL = 511 };

static int cells[81], solved[81];
static u32 rows[9], columns[9], boxes[9], steps;

static int box(int cell) { return cell / 27 * 3 + cell % 9 / 3; }

static u32 open(int cell) { return ALL & ~(rows[cell / 9] | columns[cell % 9] | boxes[box(cell)]); }

static void toggle(int cell, int digit) {
    u32 bit = 1u << digit;
    rows[cell / 9] ^= bit;
    columns[cell % 9] ^= bit;
    boxes[box(cell)] ^= bit;
}

static int choices(u32 mask) {
    int n = 0;
    for (; mask; mask &= mask - 1) n++;
    return n;
}

static int lowest(u32 mask) {
    int n = 0;
    while (!(mask >> n & 1)) n++;
    return n;
}

static int narrowest(void) {
    int best = -1, fewest = 10;
    for (int cell = 0; cell < 81; cell++)
        if (cells[cell] < 0) {
            int n = choices(open(cell));
            if (n < fewest) fewest = n, best = cell;
        }
    return best;
}

static int solve(void) {
    int cell = narrowest();
    if (cell < 0) return 1;
    if (++steps > 400) return 0;
    for (u32 mask = open(cell); mask; mask &= mask - 1) {
        int digit = lowest(mask);
        cells[cell] = digit;
        toggle(cell, digit);
        if (solve()) return 1;
        toggle(cell, digit);
        cells[cell] = -1;
    }
    return 0;
}

static int sound(void) {
    for (int unit = 0; unit < 9; unit++) {
        u32 row = 0, column = 0, square = 0;
        for (int i = 0; i < 9; i++) {
            row |= 1u << solved[unit * 9 + i];
            column |= 1u << solved[i * 9 + unit];
            square |= 1u << solved[unit / 3 * 27 + unit % 3 * 3 + i / 3 * 9 + i % 3];
        }
        if (row != ALL || column != ALL || square != ALL) return 0;
    }
    return 1;
}

static void make(u64 *state) {
    for (int i = 0; i < 81; i++) solved[i] = (i / 9 * 3 + i / 27 + i % 9) % 9;
    for (int round = 0; round < 20; round++) {
        *state = *state * 6364136223846793005ull + 1442695040888963407ull;
        int band = (int)(*state >> 33) % 3 * 3, a = band + (int)(*state >> 40) % 3, b = band + (int)(*state >> 50) % 3;
        for (int i = 0; i < 9; i++) {
            int left = round % 2 ? a * 9 + i : i * 9 + a, right = round % 2 ? b * 9 + i : i * 9 + b, t = solved[left];
            solved[left] = solved[right];
            solved[right] = t;
        }
    }
}

u64 run(u64 seed) {
    u64 state = seed, sum = 0;
    make(&state);
    sum = (u64)sound();
    for (int i = 0; i < 9; i++) rows[i] = columns[i] = boxes[i] = 0;
    for (int i = 0; i < 81; i++) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        cells[i] = (state >> 40) % 100 < 42 ? solved[i] : -1;
        if (cells[i] >= 0) toggle(i, cells[i]);
    }
    steps = 0;
    sum = sum * 31 + (u64)solve();
    for (int i = 0; i < 81; i++) sum = sum * 11 + (u64)(cells[i] + 1);
    return sum * 1009 + steps;
}
