// Sums of products of bytes with signed bytes, in 32 bits: of whole rows, and of a few rows added up.
//
// Included once for each way of multiplying: INT8_WAY names its namespace, INT8_TARGET is the attribute of
// its functions. Inputs are at most 128, so that two neighbouring products fit in 16 bits: 2 * 128 * 128 is
// the largest and is negative. All ways give the same integers.
namespace sparsact::SPARSACT_ISA {
namespace {
namespace INT8_WAY {

#if defined(SPARSACT_ISA_avx512) || defined(SPARSACT_ISA_avx2)

// sums[r] = <row r, x> for AT_ONCE rows.
INT8_TARGET inline void row_products(const std::uint8_t* x, const std::int8_t* const* w, std::size_t width,
                                     std::int32_t* sums) {
    Vector<std::int32_t> v[AT_ONCE] = {};
    for (std::size_t k = 0; k < width; k += sizeof(Lanes))
        for (int r = 0; r < AT_ONCE; ++r)
            v[r] = reinterpret_cast<Vector<std::int32_t>>(
                with_products(reinterpret_cast<Lanes>(v[r]), bytes_at(x + k), bytes_at(w[r] + k)));
    const __m128i four = folded(reinterpret_cast<Lanes>(
        exchanged_sum<2>(exchanged_sum<1>(v[0], v[1]), exchanged_sum<1>(v[2], v[3]))));
    std::memcpy(sums, &four, sizeof four);
}

INT8_TARGET SPARSACT_INLINE Lanes repeated_at(const void* four) {
    std::uint32_t bytes;
    std::memcpy(&bytes, four, 4);
    return repeated(bytes);
}

// sums[i][t * TILE + r] = <row r of tile t, input i>; inputs stand `width` bytes apart.
template <int tiles, int inputs>
INT8_TARGET void tile_products(const std::uint8_t* x, std::size_t width, const std::int8_t* const* w,
                               std::int32_t* sums) {
    constexpr int parts = 4 * TILE / sizeof(Lanes);
    Lanes s[inputs][tiles][parts];
    for (auto& of_input : s)
        for (auto& of_tile : of_input)
            for (Lanes& part : of_tile) part = repeated(0);
    for (std::size_t k = 0; k < width; k += 4) {
        Lanes weights[tiles][parts];
        for (int t = 0; t < tiles; ++t) {
            prefetch(w[t], TILE * k + AHEAD);
            for (int p = 0; p < parts; ++p) weights[t][p] = bytes_at(w[t] + TILE * k + p * sizeof(Lanes));
        }
        for (int i = 0; i < inputs; ++i) {
            const Lanes four = repeated_at(x + i * width + k);
            for (int t = 0; t < tiles; ++t)
                for (int p = 0; p < parts; ++p) s[i][t][p] = with_products(s[i][t][p], four, weights[t][p]);
        }
    }
    for (int i = 0; i < inputs; ++i)
        for (int t = 0; t < tiles; ++t)
            for (int p = 0; p < parts; ++p)
                put(sums + (i * tiles + t) * TILE + p * sizeof(Lanes) / 4, s[i][t][p]);
}

// What the sums of a group of int4 weights, each plus 8, begin with.
inline std::uint32_t int4_offset(const std::int8_t* codes) {
    std::int32_t halves[2] = {};  // of 16 bits of a lane
    for (int k = 0; k < 32; ++k) halves[k / 2 % 2] -= 8 * codes[k];
#ifdef INT8_VNNI
    return static_cast<std::uint32_t>(halves[0] + halves[1]);
#else
    return (static_cast<std::uint32_t>(halves[1]) << 16) | (static_cast<std::uint32_t>(halves[0]) & 0xFFFF);
#endif
}

// The same of int4 weights and their groups' multipliers, whose sums of a group fit in 16 bits.
template <int tiles, int inputs>
INT8_TARGET void int4_tile_products(const std::int8_t* x, const std::uint32_t* offsets, std::size_t groups,
                                    const std::uint8_t* const* w, const std::int8_t* const* multipliers,
                                    std::int32_t* sums) {
    constexpr int parts = 4 * TILE / sizeof(Lanes), count = sizeof(Lanes) / 4;
    const Lanes half = bytes_of(15);
    Lanes s[inputs][tiles][parts];
    for (auto& of_input : s)
        for (auto& of_tile : of_input)
            for (Lanes& part : of_tile) part = repeated(0);
    for (std::size_t g = 0; g < groups; ++g)
        for (int t = 0; t < tiles; ++t) {
            const std::uint8_t* at = w[t] + g * 16 * TILE;
            if (g % 4 == 0) prefetch(multipliers[t], g * TILE + AHEAD / 16);
            for (int p = 0; p < parts; ++p) {
                const Lanes by = multipliers_at(multipliers[t] + g * TILE + p * count);
                Lanes sum[inputs];
                for (int i = 0; i < inputs; ++i) sum[i] = repeated(offsets[i * groups + g]);
                for (int c = 0; c < 4; ++c) {
                    if (p == 0) prefetch(at, 4 * TILE * c + AHEAD);
                    const Lanes both = bytes_at(at + 4 * TILE * c + p * sizeof(Lanes));
                    const Lanes low = both_of(both, half), high = both_of(shifted_by_4(both), half);
                    for (int i = 0; i < inputs; ++i) {
                        const std::int8_t* codes = x + 32 * (i * groups + g) + 4 * c;
                        sum[i] = with_nibbles(sum[i], low, repeated_at(codes));
                        sum[i] = with_nibbles(sum[i], high, repeated_at(codes + 16));
                    }
                }
                for (int i = 0; i < inputs; ++i) s[i][t][p] = with_scaled(s[i][t][p], sum[i], by);
            }
        }
    for (int i = 0; i < inputs; ++i)
        for (int t = 0; t < tiles; ++t)
            for (int p = 0; p < parts; ++p) put(sums + (i * tiles + t) * TILE + p * count, s[i][t][p]);
}

// Bytes of four rows, four of a column side by side: columns in the order of `in_order`.
INT8_TARGET SPARSACT_INLINE void interleave(Lanes a, Lanes b, Lanes c, Lanes d, Lanes (&four)[4]) {
    const Lanes ab[] = {INT8_UNPACK(lo, 8, a, b), INT8_UNPACK(hi, 8, a, b)};
    const Lanes cd[] = {INT8_UNPACK(lo, 8, c, d), INT8_UNPACK(hi, 8, c, d)};
    for (int h = 0; h < 2; ++h) {
        four[2 * h] = INT8_UNPACK(lo, 16, ab[h], cd[h]);
        four[2 * h + 1] = INT8_UNPACK(hi, 16, ab[h], cd[h]);
    }
}

// sums[k] += sum_r x[r] row_r[k] for ADDED rows, while the next ones are asked for. The columns of each 4
// vectors stand in the order in which bytes are interleaved, until `in_order`.
INT8_TARGET inline void add_rows(const std::uint8_t* x, const std::int8_t* const* rows, std::size_t width,
                                 std::int32_t* sums, const std::int8_t* const* next) {
    constexpr std::size_t step = sizeof(Lanes), count = step / 4;
    Lanes four[ADDED / 4];
    for (int q = 0; q < ADDED / 4; ++q) four[q] = repeated_at(x + 4 * q);
    for (std::size_t k = 0; k < width; k += step) {
        if (k % 64 == 0)
            for (int r = 0; r < ADDED; ++r) prefetch(next[r], k);
        Lanes s[4];
        for (int v = 0; v < 4; ++v) s[v] = bytes_at(sums + k + v * count);
        for (int q = 0; q < ADDED / 4; ++q) {
            const std::int8_t* const* at = rows + 4 * q;
            Lanes w[4];
            interleave(bytes_at(at[0] + k), bytes_at(at[1] + k), bytes_at(at[2] + k), bytes_at(at[3] + k), w);
            for (int v = 0; v < 4; ++v) s[v] = with_products(s[v], four[q], w[v]);
        }
        for (int v = 0; v < 4; ++v) put(sums + k + v * count, s[v]);
    }
}

INT8_TARGET inline void in_order(std::int32_t* sums, std::size_t width) {
    constexpr std::size_t step = sizeof(Lanes), count = step / 4;
    for (std::size_t k = 0; k < width; k += step) {
        Lanes v[4];
        for (int i = 0; i < 4; ++i) v[i] = bytes_at(sums + k + i * count);
        transpose(v);
        for (int i = 0; i < 4; ++i) put(sums + k + i * count, v[i]);
    }
}

// Blocks of INT8_BLOCK bytes of each row from `column` on, four rows interleaved, as `add_packed` reads them.
INT8_TARGET inline void pack_columns(const std::int8_t* const* rows, std::size_t groups, std::size_t column,
                                     std::size_t blocks, std::int8_t* packed) {
    constexpr std::size_t step = sizeof(Lanes);
    for (std::size_t g = 0; g < groups; ++g) {
        const std::int8_t* const* at = rows + 4 * g;
        const std::int8_t* const* later = rows + 4 * std::min(g + 4, groups - 1);
        for (std::size_t c = 0; c < blocks * INT8_BLOCK; c += step) {
            const std::size_t k = column + c;
            if (c % INT8_BLOCK == 0)
                for (int r = 0; r < 4; ++r) prefetch(later[r], k);
            Lanes w[4];
            interleave(bytes_at(at[0] + k), bytes_at(at[1] + k), bytes_at(at[2] + k), bytes_at(at[3] + k), w);
            for (int v = 0; v < 4; ++v) put(packed + (c * groups + g * step) * 4 + v * step, w[v]);
        }
    }
}

// sums[i] += sum_r x[i][r] row_r for INT8_BLOCK columns of packed rows, columns in the order of `in_order`.
template <int inputs>
INT8_TARGET void add_packed(const std::uint8_t* x, std::size_t apart, const std::int8_t* packed,
                            std::size_t groups, std::int32_t* sums) {
    constexpr std::size_t step = sizeof(Lanes), count = step / 4;
    for (std::size_t c = 0; c < INT8_BLOCK; c += step) {
        Lanes s[inputs][4];
        for (int i = 0; i < inputs; ++i)
            for (int v = 0; v < 4; ++v) s[i][v] = bytes_at(sums + i * INT8_BLOCK + c + v * count);
        for (std::size_t g = 0; g < groups; ++g, packed += 4 * step) {
            Lanes w[4];
            for (int v = 0; v < 4; ++v) w[v] = bytes_at(packed + v * step);
            for (int i = 0; i < inputs; ++i) {
                const Lanes four = repeated_at(x + i * apart + 4 * g);
                for (int v = 0; v < 4; ++v) s[i][v] = with_products(s[i][v], four, w[v]);
            }
        }
        for (int i = 0; i < inputs; ++i)
            for (int v = 0; v < 4; ++v) put(sums + i * INT8_BLOCK + c + v * count, s[i][v]);
    }
}
#undef INT8_UNPACK

#else

inline void row_products(const std::uint8_t* x, const std::int8_t* const* w, std::size_t width,
                         std::int32_t* sums) {
    for (int r = 0; r < AT_ONCE; ++r) {
        sums[r] = 0;
        for (std::size_t k = 0; k < width; ++k) sums[r] += x[k] * w[r][k];
    }
}

template <int tiles, int inputs>
void tile_products(const std::uint8_t* x, std::size_t width, const std::int8_t* const* w,
                   std::int32_t* sums) {
    std::fill_n(sums, inputs * tiles * TILE, 0);
    for (int i = 0; i < inputs; ++i)
        for (int t = 0; t < tiles; ++t, sums += TILE)
            for (std::size_t k = 0; k < width; ++k)
                for (std::size_t r = 0; r < TILE; ++r)
                    sums[r] += x[i * width + k] * w[t][TILE * (k - k % 4) + 4 * r + k % 4];
}

inline std::uint32_t int4_offset(const std::int8_t*) { return 0; }

template <int tiles, int inputs>
void int4_tile_products(const std::int8_t* x, const std::uint32_t*, std::size_t groups,
                        const std::uint8_t* const* w, const std::int8_t* const* multipliers,
                        std::int32_t* sums) {
    std::fill_n(sums, inputs * tiles * TILE, 0);
    for (int i = 0; i < inputs; ++i)
        for (int t = 0; t < tiles; ++t, sums += TILE)
            for (std::size_t g = 0; g < groups; ++g)
                for (std::size_t k = 0; k < 32; ++k)
                    for (std::size_t r = 0; r < TILE; ++r) {
                        const std::uint8_t both = w[t][TILE * (16 * g + k % 16 / 4 * 4) + 4 * r + k % 4];
                        sums[r] += multipliers[t][g * TILE + r] * x[32 * (i * groups + g) + k] *
                                   ((k < 16 ? both & 15 : both >> 4) - 8);
                    }
}

inline void add_rows(const std::uint8_t* x, const std::int8_t* const* rows, std::size_t width,
                     std::int32_t* sums, const std::int8_t* const*) {
    for (int r = 0; r < ADDED; ++r)
        for (std::size_t k = 0; k < width; ++k) sums[k] += x[r] * rows[r][k];
}

inline void in_order(std::int32_t*, std::size_t) {}

inline void pack_columns(const std::int8_t* const* rows, std::size_t groups, std::size_t column,
                         std::size_t blocks, std::int8_t* packed) {
    for (std::size_t c = 0; c < blocks * INT8_BLOCK; c += INT8_BLOCK)
        for (std::size_t r = 0; r < 4 * groups; ++r, packed += INT8_BLOCK)
            std::memcpy(packed, rows[r] + column + c, INT8_BLOCK);
}

template <int inputs>
void add_packed(const std::uint8_t* x, std::size_t apart, const std::int8_t* packed, std::size_t groups,
                std::int32_t* sums) {
    for (std::size_t r = 0; r < 4 * groups; ++r)
        for (int i = 0; i < inputs; ++i)
            for (std::size_t k = 0; k < INT8_BLOCK; ++k)
                sums[i * INT8_BLOCK + k] += x[i * apart + r] * packed[r * INT8_BLOCK + k];
}

#endif

template <int... i>
constexpr Int8Products all_products(std::integer_sequence<int, i...>) {
    return {row_products,
            add_rows,
            in_order,
            pack_columns,
            {add_packed<1>, add_packed<2>, add_packed<3>, add_packed<4>},
            tile_products<TILES_OF_ONE, 1>,
            {tile_products<TILES_OF_MANY, i + 1>...},
            int4_offset,
            int4_tile_products<TILES_OF_ONE, 1>,
            {int4_tile_products<1, i + 1>...}};
}
constexpr Int8Products products = all_products(std::make_integer_sequence<int, TOGETHER>{});

}  // namespace INT8_WAY
}  // namespace
}  // namespace sparsact::SPARSACT_ISA
