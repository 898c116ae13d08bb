/* Linear algebra over the integers modulo a prime: elimination, determinant, inverse, solving. */
typedef unsigned long long u64;
typedef unsigned int u32;

enum { N = 12, PRIME = 1000003 };

static u32 matrix[N][2 * N], original[N][N], product[N][N];

static u32 power(u64 base, u32 exponent) {
    u64 result = 1;
    for (; exponent; exponent >>= 1, base = base * base % PRIME)
        if (exponent & 1) result = result * base % PRIME;
    return (u32)result;
}

static int pivot(int column) {
    for (int row = column; row < N; row++)
        if (matrix[row][column]) return row;
    return -1;
}

static void exchange(int a, int b) {
    for (int j = 0; j < 2 * N; j++) {
        u32 t = matrix[a][j];
        matrix[a][j] = matrix[b][j];
        matrix[b][j] = t;
    }
}

static void subtract(int target, int source, u32 factor) {
    for (int j = 0; j < 2 * N; j++)
        matrix[target][j] = (u32)((matrix[target][j] + (u64)(PRIME - factor) * matrix[source][j]) % PRIME);
}

static u32 invert(void) {
    u64 determinant = 1;
    for (int c = 0; c < N; c++) {
        int row = pivot(c);
        if (row < 0) return 0;
        if (row != c) {
            exchange(row, c);
            determinant = PRIME - determinant;
        }
        u32 lead = matrix[c][c], inverse = power(lead, PRIME - 2);
        determinant = determinant * lead % PRIME;
        for (int j = 0; j < 2 * N; j++) matrix[c][j] = (u32)((u64)matrix[c][j] * inverse % PRIME);
        for (int i = 0; i < N; i++)
            if (i != c && matrix[i][c]) subtract(i, c, matrix[i][c]);
    }
    return (u32)determinant;
}

static int is_identity(void) {
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            u64 sum = 0;
            for (int k = 0; k < N; k++) sum += (u64)original[i][k] * matrix[k][N + j] % PRIME;
            product[i][j] = (u32)(sum % PRIME);
            if (product[i][j] != (i == j)) return 0;
        }
    return 1;
}

u64 run(u64 seed) {
    u64 state = seed, sum = 0;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++) {
                state = state * 25214903917ull + 11;
                original[i][j] = matrix[i][j] = (u32)((state >> 20) % PRIME);
                matrix[i][N + j] = i == j;
            }
        u32 determinant = invert();
        sum = sum * 31 + determinant + (u64)is_identity();
        for (int i = 0; i < N; i++) sum = sum * 33 + matrix[i][N + (i * 5) % N];
    }
    return sum;
}
