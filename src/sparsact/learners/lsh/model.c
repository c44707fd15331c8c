$head
enum { COLUMNS = $n_columns, MOST_COLUMNS = $most_columns, MOST_LOCAL = $most_local, MOST_CODES = $most_codes, MOST_TABLES = $most_tables, TARGETS = $n_targets };

/* Hash functions, and the polynomials of the buckets that hold rows, in ascending order of their keys: the first
   `bits` bits of a key tell its group, and the next 32, its tag, which of the group it is. */
struct tables {
    size_t columns, local, codes, tables;
    int degree, grid, signs, first, bits; /* first: the first table that has the bucket answers, else all by their mean */
    const double *centre, *projections, *directions, *offsets;
    const uint64_t *seeds;
    const uint32_t *starts, *tags;
    size_t coefficients;
    const $number *polynomials;
    const $weight *weights;
};

/* to = from (rows) times matrix (rows, width columns of a stride). */
static inline void project(const double *from, size_t rows, const double *matrix, size_t stride, size_t width, double *to)
{
    for (size_t j = 0; j < width; ++j) to[j] = 0.0;
    for (size_t i = 0; i < rows; ++i)
        for (size_t j = 0; j < width; ++j) to[j] += from[i] * matrix[i * stride + j];
}

static int64_t below(double u)
{
    const double farthest = 4611686018427387904.0;
    int64_t cell;
    if (u != u) return 0;
    u = u > farthest ? farthest : u < -farthest ? -farthest : u;
    cell = (int64_t)u;
    return (double)cell > u ? cell - 1 : cell;
}

static uint64_t mixed(uint64_t key, uint64_t code)
{
    key = (key ^ code) * 0x9E3779B97F4A7C15u;
    return key ^ (key >> 32);
}

static uint64_t finished(uint64_t key)
{
    key = (key ^ (key >> 30)) * 0xBF58476D1CE4E5B9u;
    key = (key ^ (key >> 27)) * 0x94D049BB133111EBu;
    return key ^ (key >> 31);
}

static inline double polynomial(const struct tables *t, const double *v, const $number *own, size_t target)
{
    double value = (double)own[target];
    const $number *next = own + TARGETS + target;
    if (t->degree >= 1)
        for (size_t i = 0; i < t->local; ++i, next += TARGETS) value += v[i] * (double)*next;
    if (t->degree >= 2)
        for (size_t i = 0; i < t->local; ++i)
            for (size_t j = i; j < t->local; ++j, next += TARGETS) value += v[i] * v[j] * (double)*next;
    return value;
}

/* Place of a tag from start to stop, or stop. Eight are looked at without a branch; tags end with eight zeros. */
static inline uint32_t find(const uint32_t *tags, uint32_t start, uint32_t stop, uint32_t tag)
{
    uint32_t found = stop;
    for (uint32_t j = 8; j-- > 0;) found = tags[start + j] == tag ? start + j : found;
    if (found < stop) return found;
    for (start += 8; start < stop && tags[start] != tag;) ++start;
    return start < stop ? start : stop;
}

/* Adds the value of the tables to y; 0 where every bucket is empty. */
static int add(const struct tables *t, const double *x, double *y)
{
    double from[MOST_COLUMNS], z[MOST_LOCAL], u[MOST_CODES], v[MOST_TABLES][MOST_LOCAL], sums[TARGETS], total = 0.0;
    uint64_t keys[MOST_TABLES];
    for (size_t i = 0; i < t->columns; ++i) from[i] = x[i] - t->centre[i];
    project(from, t->columns, t->projections, t->local, t->local, z);
    for (size_t k = 0; k < t->tables; ++k) {
        uint64_t key = t->seeds[k];
        project(t->grid ? z : from, t->grid ? t->local : t->columns, t->directions + k * t->codes,
                t->tables * t->codes, t->codes, u);
        for (size_t j = 0; j < t->codes; ++j) {
            const double place = u[j] + t->offsets[k * t->codes + j];
            const int64_t cell = t->signs ? place > 0.0 : below(place);
            key = mixed(key, (uint64_t)cell);
            if (t->grid) v[k][j] = place - (double)cell - 0.5;
        }
        keys[k] = finished(key);
    }
    for (size_t j = 0; j < TARGETS; ++j) sums[j] = 0.0;
    for (size_t k = 0; k < t->tables && !(t->first && total > 0.0); ++k) {
        const uint64_t group = keys[k] >> (64 - t->bits);
        const uint32_t tag = (uint32_t)(keys[k] << t->bits >> 32), stop = t->starts[group + 1];
        const uint32_t i = find(t->tags, t->starts[group], stop, tag);
        double weight;
        if (i == stop) continue;
        total += (double)t->weights[i];
        weight = t->first ? 1.0 : (double)t->weights[i];
        for (size_t j = 0; j < TARGETS; ++j)
            sums[j] += weight * polynomial(t, t->grid ? v[k] : z, t->polynomials + i * t->coefficients, j);
    }
    if (total > 0.0)
        for (size_t j = 0; j < TARGETS; ++j) y[j] += t->first ? sums[j] : sums[j] / total;
    return total > 0.0;
}

$data$categories
void $name(const double *given, double *y)
{
$body}
