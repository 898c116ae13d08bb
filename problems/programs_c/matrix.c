/* Products of matrices: three loops, tiled, transposed, Strassen's recursion, and powers. */
typedef unsigned long long u64;
typedef unsigned int u32;

enum { N = 16, TILE = 4 };

static u32 a[N * N], b[N * N], c[N * N], d[N * N], e[N * N];

static void clear(u32 *m, int n) {
    for (int i = 0; i < n; i++) m[i] = 0;
}

static void plain(const u32 *x, const u32 *y, u32 *z) {
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            u32 sum = 0;
            for (int k = 0; k < N; k++) sum += x[i * N + k] * y[k * N + j];
            z[i * N + j] = sum;
        }
}

static void tiled(const u32 *x, const u32 *y, u32 *z) {
    clear(z, N * N);
    for (int ii = 0; ii < N; ii += TILE)
        for (int kk = 0; kk < N; kk += TILE)
            for (int jj = 0; jj < N; jj += TILE)
                for (int i = ii; i < ii + TILE; i++)
                    for (int k = kk; k < kk + TILE; k++)
                        for (int j = jj; j < jj + TILE; j++) z[i * N + j] += x[i * N + k] * y[k * N + j];
}

static void transpose(u32 *m) {
    for (int i = 0; i < N; i++)
        for (int j = 0; j < i; j++) {
            u32 t = m[i * N + j];
            m[i * N + j] = m[j * N + i];
            m[j * N + i] = t;
        }
}

static void rows(const u32 *x, const u32 *turned, u32 *z) {
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            const u32 *p = x + i * N, *q = turned + j * N;
            u32 sum = 0;
            for (const u32 *end = p + N; p < end;) sum += *p++ * *q++;
            z[i * N + j] = sum;
        }
}

static void add(const u32 *x, const u32 *y, u32 *z, int n, int sx, int sy, u32 sign) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) z[i * n + j] = x[i * sx + j] + sign * y[i * sy + j];
}

static void strassen(const u32 *x, const u32 *y, u32 *z, int n, int s) {
    if (n == 2) {
        for (int i = 0; i < 2; i++)
            for (int j = 0; j < 2; j++) z[2 * i + j] = x[s * i] * y[j] + x[s * i + 1] * y[s + j];
        return;
    }
    int h = n / 2;
    const u32 *x2 = x + h, *x3 = x + h * s, *x4 = x3 + h, *y2 = y + h, *y3 = y + h * s, *y4 = y3 + h;
    u32 p[7][64], left[64], right[64];
    add(x, x4, left, h, s, s, 1), add(y, y4, right, h, s, s, 1), strassen(left, right, p[0], h, h);
    add(x3, x4, left, h, s, s, 1), add(y, y, right, h, s, s, 0), strassen(left, right, p[1], h, h);
    add(x, x, left, h, s, s, 0), add(y2, y4, right, h, s, s, -1u), strassen(left, right, p[2], h, h);
    add(x4, x4, left, h, s, s, 0), add(y3, y, right, h, s, s, -1u), strassen(left, right, p[3], h, h);
    add(x, x2, left, h, s, s, 1), add(y4, y4, right, h, s, s, 0), strassen(left, right, p[4], h, h);
    add(x3, x, left, h, s, s, -1u), add(y, y2, right, h, s, s, 1), strassen(left, right, p[5], h, h);
    add(x2, x4, left, h, s, s, -1u), add(y3, y4, right, h, s, s, 1), strassen(left, right, p[6], h, h);
    for (int i = 0; i < h; i++)
        for (int j = 0; j < h; j++) {
            int k = i * h + j;
            z[i * n + j] = p[0][k] + p[3][k] - p[4][k] + p[6][k];
            z[i * n + j + h] = p[2][k] + p[4][k];
            z[(i + h) * n + j] = p[1][k] + p[3][k];
            z[(i + h) * n + j + h] = p[0][k] - p[1][k] + p[2][k] + p[5][k];
        }
}

static u64 differences(const u32 *x, const u32 *y) {
    u64 n = 0;
    for (int i = 0; i < N * N; i++) n += x[i] != y[i];
    return n;
}

u64 run(u64 seed) {
    u64 state = seed, sum = 0;
    for (int i = 0; i < N * N; i++) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        a[i] = (u32)(state >> 32);
        b[i] = (u32)(state >> 40);
    }
    plain(a, b, c);
    tiled(a, b, d);
    strassen(a, b, e, N, N);
    sum = differences(c, d) * 7 + differences(c, e) * 11;
    transpose(b);
    rows(a, b, d);
    sum += differences(c, d) * 13;
    for (int i = 0; i < N * N; i++) sum = sum * 31 + e[i];
    return sum;
}
