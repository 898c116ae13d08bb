/* Floating point: heat on a grid, bodies that attract each other, a root by Newton, an integral by Simpson. */
typedef unsigned long long u64;
typedef unsigned int u32;

enum { N = 18, BODIES = 5, STEPS = 12 };

static double heat[2][N][N];

typedef struct {
    double x, y, vx, vy, mass;
} Body;

static Body bodies[BODIES];

static double diffuse(void) {
    for (int step = 0; step < STEPS; step++) {
        double(*from)[N] = heat[step & 1], (*to)[N] = heat[~step & 1];
        for (int i = 1; i < N - 1; i++)
            for (int j = 1; j < N - 1; j++) {
                double around = from[i - 1][j] + from[i + 1][j] + from[i][j - 1] + from[i][j + 1];
                to[i][j] = from[i][j] + 0.2 * (around - 4.0 * from[i][j]);
            }
    }
    double sum = 0.0;
    for (int i = 0; i < N; i++) sum += heat[STEPS & 1][i][(i * 7) % N] * (double)(i + 1);
    return sum;
}

static double root(double x) {
    double guess = x > 1.0 ? x : 1.0;
    for (int i = 0; i < 40; i++) {
        double better = 0.5 * (guess + x / guess);
        if (better == guess) break;
        guess = better;
    }
    return guess;
}

static void attract(double dt) {
    for (int i = 0; i < BODIES; i++)
        for (int j = i + 1; j < BODIES; j++) {
            Body *a = &bodies[i], *b = &bodies[j];
            double dx = b->x - a->x, dy = b->y - a->y, square = dx * dx + dy * dy + 0.01;
            double pull = dt / (square * root(square));
            a->vx += dx * b->mass * pull, a->vy += dy * b->mass * pull;
            b->vx -= dx * a->mass * pull, b->vy -= dy * a->mass * pull;
        }
    for (int i = 0; i < BODIES; i++) {
        bodies[i].x += bodies[i].vx * dt;
        bodies[i].y += bodies[i].vy * dt;
    }
}

static double energy(void) {
    double sum = 0.0;
    for (int i = 0; i < BODIES; i++)
        sum += 0.5 * bodies[i].mass * (bodies[i].vx * bodies[i].vx + bodies[i].vy * bodies[i].vy);
    return sum;
}

static double polynomial(const double *c, int n, double x) {
    double value = 0.0;
    while (n--) value = value * x + c[n];
    return value;
}

static double simpson(const double *c, int n, double from, double to, int parts) {
    double h = (to - from) / (double)parts, sum = polynomial(c, n, from) + polynomial(c, n, to);
    for (int i = 1; i < parts; i++) sum += polynomial(c, n, from + h * (double)i) * (i % 2 ? 4.0 : 2.0);
    return sum * h / 3.0;
}

u64 run(u64 seed) {
    u64 state = seed;
    double numbers[N];
    for (int i = 0; i < N; i++) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        numbers[i] = (double)(u32)(state >> 44) / 1048576.0;
        for (int j = 0; j < N; j++) heat[0][i][j] = heat[1][i][j] = i && j && i < N - 1 && j < N - 1 ? numbers[i] * j : 0.0;
    }
    for (int i = 0; i < BODIES; i++) {
        Body body = {numbers[i], numbers[i + 5], 0.0, 0.0, numbers[i + 10] + 0.1};
        bodies[i] = body;
    }
    for (int i = 0; i < 8; i++) attract(0.01);
    double total = diffuse() + energy() + simpson(numbers, 6, 0.0, 2.0, 20);
    return (u64)(total * 1099511627776.0) ^ seed;
}
