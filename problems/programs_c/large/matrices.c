/* A library for matrices: products, decompositions, inverses, powers and ranks, over doubles and over a prime field. */
typedef unsigned long long u64;
typedef unsigned int u32;

enum { N = 9, PRIME = 65521 };
typedef double Matrix[N][N];
typedef u32 Field[N][N];

static u64 next(u64 *state) {
    u64 x = *state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return *state = x;
}

static double absolute(double x) { return x < 0 ? -x : x; }

static double root(double x) {
    double y = x > 1 ? x : 1;
    for (int i = 0; i < 60 && absolute(y * y - x) > 1e-12 * (x + 1); i++) y = (y + x / y) / 2;
    return y;
}

static void fill(Matrix a, u64 *state) {
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) a[i][j] = (double)(next(state) % 2000) / 500 - 2 + (i == j) * 5;
}

static void identity(Matrix a) {
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) a[i][j] = i == j;
}

static void copy(Matrix to, Matrix from) {
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) to[i][j] = from[i][j];
}

static void add(Matrix to, Matrix a, Matrix b, double scale) {
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) to[i][j] = a[i][j] + scale * b[i][j];
}

static void multiply(Matrix to, Matrix a, Matrix b) {
    Matrix c;
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) {
            double sum = 0;
            for (int k = 0; k < N; k++) sum += a[i][k] * b[k][j];
            c[i][j] = sum;
        }
    }
    copy(to, c);
}

static void transpose(Matrix a) {
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < i; j++) {
            double x = a[i][j];
            a[i][j] = a[j][i];
            a[j][i] = x;
        }
    }
}

static void apply(double *to, Matrix a, const double *x) {
    for (int i = 0; i < N; i++) {
        to[i] = 0;
        for (int j = 0; j < N; j++) to[i] += a[i][j] * x[j];
    }
}

static double dot(const double *a, const double *b) {
    double sum = 0;
    for (int i = 0; i < N; i++) sum += a[i] * b[i];
    return sum;
}

static double norm(Matrix a) {
    double sum = 0;
    for (int i = 0; i < N; i++) sum += dot(a[i], a[i]);
    return root(sum);
}

static double trace(Matrix a) {
    double sum = 0;
    for (int i = 0; i < N; i++) sum += a[i][i];
    return sum;
}

static void swap_rows(Matrix a, int i, int j) {
    for (int k = 0; k < N; k++) {
        double x = a[i][k];
        a[i][k] = a[j][k];
        a[j][k] = x;
    }
}

static int factor(Matrix a, int *rows) {
    int sign = 1;
    for (int k = 0; k < N; k++) rows[k] = k;
    for (int k = 0; k < N; k++) {
        int pivot = k;
        for (int i = k + 1; i < N; i++)
            if (absolute(a[i][k]) > absolute(a[pivot][k])) pivot = i;
        if (absolute(a[pivot][k]) < 1e-9) return 0;
        if (pivot != k) {
            int row = rows[k];
            rows[k] = rows[pivot];
            rows[pivot] = row;
            swap_rows(a, pivot, k);
            sign = -sign;
        }
        for (int i = k + 1; i < N; i++) {
            a[i][k] /= a[k][k];
            for (int j = k + 1; j < N; j++) a[i][j] -= a[i][k] * a[k][j];
        }
    }
    return sign;
}

static void solve(Matrix lu, const int *rows, const double *b, double *x) {
    for (int i = 0; i < N; i++) {
        x[i] = b[rows[i]];
        for (int j = 0; j < i; j++) x[i] -= lu[i][j] * x[j];
    }
    for (int i = N - 1; i >= 0; i--) {
        for (int j = i + 1; j < N; j++) x[i] -= lu[i][j] * x[j];
        x[i] /= lu[i][i];
    }
}

static double determinant(Matrix a) {
    Matrix lu;
    int rows[N];
    copy(lu, a);
    double product = factor(lu, rows);
    for (int i = 0; i < N; i++) product *= lu[i][i];
    return product;
}

static int invert(Matrix to, Matrix a) {
    Matrix lu;
    int rows[N];
    copy(lu, a);
    if (!factor(lu, rows)) return 0;
    for (int j = 0; j < N; j++) {
        double unit[N], x[N];
        for (int i = 0; i < N; i++) unit[i] = i == j;
        solve(lu, rows, unit, x);
        for (int i = 0; i < N; i++) to[i][j] = x[i];
    }
    return 1;
}

static void orthogonalize(Matrix q, Matrix a) {
    copy(q, a);
    for (int i = 0; i < N; i++) {
        for (int k = 0; k < i; k++) {
            double share = dot(q[i], q[k]);
            for (int j = 0; j < N; j++) q[i][j] -= share * q[k][j];
        }
        double length = root(dot(q[i], q[i]));
        for (int j = 0; j < N; j++) q[i][j] /= length + 1e-12;
    }
}

static void power(Matrix to, Matrix a, u32 exponent) {
    Matrix square;
    copy(square, a);
    identity(to);
    for (; exponent; exponent >>= 1) {
        if (exponent & 1) multiply(to, to, square);
        multiply(square, square, square);
    }
}

static double largest(Matrix a) {
    double x[N], y[N], value = 0;
    for (int i = 0; i < N; i++) x[i] = 1 + i * 0.125;
    for (int step = 0; step < 20; step++) {
        apply(y, a, x);
        value = root(dot(y, y));
        for (int i = 0; i < N; i++) x[i] = y[i] / (value + 1e-12);
    }
    return value;
}

static int relax(Matrix a, const double *b, double *x) {
    for (int step = 1; step <= 40; step++) {
        double change = 0;
        for (int i = 0; i < N; i++) {
            double rest = b[i] - dot(a[i], x) + a[i][i] * x[i], now = rest / a[i][i];
            change += absolute(now - x[i]);
            x[i] = now;
        }
        if (change < 1e-9) return step;
    }
    return 0;
}

static u32 raise(u32 base, u32 exponent) {
    u64 result = 1, square = base;
    for (; exponent; exponent >>= 1, square = square * square % PRIME)
        if (exponent & 1) result = result * square % PRIME;
    return (u32)result;
}

static void field_multiply(Field to, Field a, Field b) {
    Field c;
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) {
            u64 sum = 0;
            for (int k = 0; k < N; k++) sum += (u64)a[i][k] * b[k][j];
            c[i][j] = (u32)(sum % PRIME);
        }
    }
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) to[i][j] = c[i][j];
}

static int rank(Field a) {
    int done = 0;
    for (int column = 0; column < N && done < N; column++) {
        int pivot = done;
        while (pivot < N && !a[pivot][column]) pivot++;
        if (pivot == N) continue;
        for (int j = 0; j < N; j++) {
            u32 x = a[pivot][j];
            a[pivot][j] = a[done][j];
            a[done][j] = x;
        }
        u32 inverse = raise(a[done][column], PRIME - 2);
        for (int i = done + 1; i < N; i++) {
            u64 share = (u64)a[i][column] * inverse % PRIME;
            for (int j = column; j < N; j++) a[i][j] = (u32)((a[i][j] + (PRIME - share) * a[done][j]) % PRIME);
        }
        done++;
    }
    return done;
}

static u64 rounded(double x) { return (u64)(long long)(x * 1000); }

u64 run(u64 seed) {
    u64 state = seed | 1, sum = 0;
    Matrix a, b, c, q;
    for (int round = 0; round < 6; round++) {
        fill(a, &state);
        fill(b, &state);
        multiply(c, a, b);
        sum = sum * 31 + rounded(trace(c)) + rounded(norm(c));
        transpose(c);
        add(c, c, b, -0.5);
        sum = sum * 31 + rounded(determinant(a)) + rounded(determinant(b));
        if (invert(b, a)) {
            multiply(c, a, b);
            sum = sum * 31 + rounded(trace(c)) + rounded(norm(b));
        }
        orthogonalize(q, a);
        sum = sum * 31 + rounded(dot(q[1], q[2]) + dot(q[3], q[3]));
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++) a[i][j] = a[i][j] / 16 + (i == j);
        power(c, a, 5 + (u32)round);
        double x[N] = {0};
        sum = sum * 31 + rounded(norm(c)) + rounded(largest(a)) + (u64)relax(a, b[0], x) + rounded(x[4]);
        Field f;
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++) f[i][j] = i > 6 ? f[i - 3][j] : (u32)(next(&state) % PRIME);
        field_multiply(f, f, f);
        sum = sum * 31 + f[2][3] + (u64)rank(f);
    }
    return sum;
}
