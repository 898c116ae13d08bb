/* Queens on a board, counted with bit masks, with arrays, and placed by min-conflicts. */
typedef unsigned long long u64;
typedef unsigned int u32;

enum { SMALL = 6, LARGE = 16 };

static int columns[LARGE], rows_used[LARGE], up[2 * LARGE], down[2 * LARGE];

static u32 with_masks(u32 all, u32 taken, u32 left, u32 right) {
    if (taken == all) return 1;
    u32 count = 0;
    for (u32 open = all & ~(taken | left | right); open;) {
        u32 bit = open & (0 - open);
        open ^= bit;
        count += with_masks(all, taken | bit, (left | bit) << 1, (right | bit) >> 1);
    }
    return count;
}

static u32 with_arrays(int column, int n, u64 *places) {
    if (column == n) {
        for (int i = 0; i < n; i++) *places = *places * 17 + (u64)columns[i];
        return 1;
    }
    u32 count = 0;
    for (int row = 0; row < n; row++) {
        if (rows_used[row] || up[row + column] || down[row - column + n]) continue;
        rows_used[row] = up[row + column] = down[row - column + n] = 1;
        columns[column] = row;
        count += with_arrays(column + 1, n, places);
        rows_used[row] = up[row + column] = down[row - column + n] = 0;
    }
    return count;
}

static int conflicts(int column, int row) {
    int n = 0;
    for (int other = 0; other < LARGE; other++) {
        int distance = other > column ? other - column : column - other;
        if (!distance) continue;
        int step = columns[other] > row ? columns[other] - row : row - columns[other];
        n += step == 0 || step == distance;
    }
    return n;
}

static int repair(u64 *state) {
    for (int step = 0; step < 60; step++) {
        *state = *state * 6364136223846793005ull + 1442695040888963407ull;
        int column = (int)(*state >> 60), best = 0, fewest = LARGE * 3;
        if (!conflicts(column, columns[column])) continue;
        for (int row = 0; row < LARGE; row++) {
            int n = conflicts(column, row) * 2 + (row == columns[column]);
            if (n < fewest) fewest = n, best = row;
        }
        columns[column] = best;
    }
    int total = 0;
    for (int column = 0; column < LARGE; column++) total += conflicts(column, columns[column]);
    return total;
}

u64 run(u64 seed) {
    u64 state = seed, sum = 0, places = 0;
    u32 all = (1u << SMALL) - 1, start = 1u << seed % SMALL;
    sum = with_masks(all, start, start << 1, start >> 1) * 10007 + with_masks(all, 0, 0, 0);
    for (int i = 0; i < LARGE; i++) rows_used[i] = 0;
    for (int i = 0; i < 2 * LARGE; i++) up[i] = down[i] = 0;
    sum = sum * 31 + with_arrays(0, SMALL, &places);
    for (int i = 0; i < LARGE; i++) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        columns[i] = (int)(state >> 60);
    }
    sum = sum * 31 + (u64)repair(&state);
    for (int i = 0; i < LARGE; i++) sum = sum * 17 + (u64)columns[i];
    return sum ^ places;
}
