/* Cells on a torus: Conway's life by neighbours and by bits, a one-dimensional rule, Langton's ant, a flood. */
typedef unsigned long long u64;
typedef unsigned int u32;
typedef unsigned char u8;

enum { H = 16, W = 32 };

static u8 cells[H][W], next[H][W];
static u32 board[H], fresh[H];
static int stack[H * W];

static int neighbours(int y, int x) {
    int n = 0;
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++)
            if (dy || dx) n += cells[(y + dy + H) % H][(x + dx + W) % W];
    return n;
}

static void generation(void) {
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++) {
            int n = neighbours(y, x);
            next[y][x] = n == 3 || (n == 2 && cells[y][x]);
        }
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++) cells[y][x] = next[y][x];
}

static void count(u32 row, u32 *ones, u32 *twos, u32 *fours) {
    u32 carry = *ones & row;
    *ones ^= row;
    u32 more = *twos & carry;
    *twos ^= carry;
    *fours |= more;
}

static void generation_in_bits(void) {
    for (int y = 0; y < H; y++) {
        u32 ones = 0, twos = 0, fours = 0;
        for (int dy = -1; dy <= 1; dy++) {
            u32 row = board[(y + dy + H) % H];
            count(row << 1 | row >> 31, &ones, &twos, &fours);
            count(row >> 1 | row << 31, &ones, &twos, &fours);
            if (dy) count(row, &ones, &twos, &fours);
        }
        fresh[y] = ~fours & twos & (ones | board[y]);
    }
    for (int y = 0; y < H; y++) board[y] = fresh[y];
}

static u32 rule(u32 row, int number) {
    u32 result = 0;
    for (int i = 0; i < 32; i++) {
        u32 around = (row >> (i + 31) % 32 & 1) | (row >> i & 1) << 1 | (row >> (i + 1) % 32 & 1) << 2;
        result |= ((u32)number >> around & 1) << i;
    }
    return result;
}

static u64 ant(int steps) {
    int y = H / 2, x = W / 2, direction = 0;
    static const int dy[] = {-1, 0, 1, 0}, dx[] = {0, 1, 0, -1};
    while (steps--) {
        direction = (direction + (cells[y][x] ? 3 : 1)) % 4;
        cells[y][x] ^= 1;
        y = (y + dy[direction] + H) % H;
        x = (x + dx[direction] + W) % W;
    }
    return (u64)(y * W + x);
}

static int flood(int start) {
    int top = 0, size = 0;
    stack[top++] = start;
    cells[start / W][start % W] = 2;
    while (top) {
        int at = stack[--top], y = at / W, x = at % W;
        size++;
        int around[4] = {(y + 1) % H * W + x, (y + H - 1) % H * W + x, y * W + (x + 1) % W, y * W + (x + W - 1) % W};
        for (int i = 0; i < 4; i++) {
            u8 *cell = &cells[around[i] / W][around[i] % W];
            if (!*cell) {
                *cell = 2;
                stack[top++] = around[i];
            }
        }
    }
    return size;
}

u64 run(u64 seed) {
    u64 state = seed, sum = 0;
    for (int y = 0; y < H; y++) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        board[y] = (u32)(state >> 32);
        for (int x = 0; x < W; x++) cells[y][x] = board[y] >> x & 1;
    }
    for (int i = 0; i < 6; i++) generation(), generation_in_bits();
    for (int y = 0; y < H; y++) {
        for (int x = 0; x < W; x++) sum = sum * 3 + cells[y][x] + (cells[y][x] != (board[y] >> x & 1)) * 100;
        sum ^= rule(board[y], 30) ^ (u64)rule(board[y], 110) << 32;
    }
    sum = sum * 31 + ant(300);
    for (int i = 0; i < H * W; i++)
        if (!cells[i / W][i % W]) sum = sum * 31 + (u64)flood(i);
    return sum;
}
