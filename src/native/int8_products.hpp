// Sums of products of bytes with signed bytes, in 32 bits: of whole rows, and of a few rows added up.
//
// Included once for each way of multiplying: INT8_WAY names its namespace, INT8_TARGET is the attribute of
// its functions. Inputs are at most 128, so that two neighbouring products fit in 16 bits: 2 * 128 * 128 is
// the largest and is negative. All ways give the same integers.
namespace sparsact::SPARSACT_ISA {
namespace {
namespace INT8_WAY {

#if defined(SPARSACT_ISA_avx512)
using Lanes = __m512i;
INT8_TARGET SPARSACT_INLINE Lanes bytes_at(const void* from) { return _mm512_loadu_si512(from); }
INT8_TARGET SPARSACT_INLINE void put(void* to, Lanes v) { _mm512_storeu_si512(to, v); }
INT8_TARGET SPARSACT_INLINE Lanes repeated(std::uint32_t four) {
    return _mm512_set1_epi32(static_cast<int>(four));
}
// Each lane of 32 bits plus the four products of its bytes.
INT8_TARGET SPARSACT_INLINE Lanes with_products(Lanes sums, Lanes x, Lanes w) {
#ifdef INT8_VNNI
    return _mm512_dpbusd_epi32(sums, x, w);
#else
    return _mm512_add_epi32(sums, _mm512_madd_epi16(_mm512_maddubs_epi16(x, w), _mm512_set1_epi16(1)));
#endif
}
INT8_TARGET SPARSACT_INLINE Lanes sum_of(Lanes a, Lanes b) { return _mm512_add_epi32(a, b); }
// The sum of the lanes of 128 bits.
INT8_TARGET SPARSACT_INLINE __m128i folded(Lanes v) {
    const __m256i half = _mm256_add_epi32(__builtin_shufflevector(v, v, 0, 1, 2, 3),
                                          __builtin_shufflevector(v, v, 4, 5, 6, 7));
    return _mm_add_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
}
#define INT8_UNPACK(half, bits, x, y) _mm512_unpack##half##_epi##bits(x, y)
// Four vectors whose lanes of 128 bits are the rows of a matrix, transposed.
INT8_TARGET SPARSACT_INLINE void transpose(Lanes (&v)[4]) {
    const Lanes a = __builtin_shufflevector(v[0], v[1], 0, 1, 2, 3, 8, 9, 10, 11);
    const Lanes b = __builtin_shufflevector(v[2], v[3], 0, 1, 2, 3, 8, 9, 10, 11);
    const Lanes c = __builtin_shufflevector(v[0], v[1], 4, 5, 6, 7, 12, 13, 14, 15);
    const Lanes d = __builtin_shufflevector(v[2], v[3], 4, 5, 6, 7, 12, 13, 14, 15);
    v[0] = __builtin_shufflevector(a, b, 0, 1, 4, 5, 8, 9, 12, 13);
    v[1] = __builtin_shufflevector(a, b, 2, 3, 6, 7, 10, 11, 14, 15);
    v[2] = __builtin_shufflevector(c, d, 0, 1, 4, 5, 8, 9, 12, 13);
    v[3] = __builtin_shufflevector(c, d, 2, 3, 6, 7, 10, 11, 14, 15);
}
#elif defined(SPARSACT_ISA_avx2)
using Lanes = __m256i;
INT8_TARGET SPARSACT_INLINE Lanes bytes_at(const void* from) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}
INT8_TARGET SPARSACT_INLINE void put(void* to, Lanes v) { _mm256_storeu_si256(static_cast<__m256i*>(to), v); }
INT8_TARGET SPARSACT_INLINE Lanes repeated(std::uint32_t four) {
    return _mm256_set1_epi32(static_cast<int>(four));
}
INT8_TARGET SPARSACT_INLINE Lanes with_products(Lanes sums, Lanes x, Lanes w) {
#ifdef INT8_VNNI
    return _mm256_dpbusd_avx_epi32(sums, x, w);
#else
    return _mm256_add_epi32(sums, _mm256_madd_epi16(_mm256_maddubs_epi16(x, w), _mm256_set1_epi16(1)));
#endif
}
INT8_TARGET SPARSACT_INLINE Lanes sum_of(Lanes a, Lanes b) { return _mm256_add_epi32(a, b); }
INT8_TARGET SPARSACT_INLINE __m128i folded(Lanes v) {
    return _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
}
#define INT8_UNPACK(half, bits, x, y) _mm256_unpack##half##_epi##bits(x, y)
INT8_TARGET SPARSACT_INLINE void transpose(Lanes (&v)[4]) {
    const Lanes a = v[0], b = v[1], c = v[2], d = v[3];
    v[0] = _mm256_permute2x128_si256(a, b, 0x20), v[1] = _mm256_permute2x128_si256(c, d, 0x20);
    v[2] = _mm256_permute2x128_si256(a, b, 0x31), v[3] = _mm256_permute2x128_si256(c, d, 0x31);
}
#endif

#if defined(SPARSACT_ISA_avx512) || defined(SPARSACT_ISA_avx2)

template <int rows, int inputs>
INT8_TARGET SPARSACT_INLINE void accumulate(const std::uint8_t* x, const std::int8_t* const* w,
                                            std::size_t width, std::size_t k, Lanes (&sums)[rows][inputs]) {
    Lanes in[inputs];
    for (int i = 0; i < inputs; ++i) in[i] = bytes_at(x + i * width + k);
    for (int r = 0; r < rows; ++r) {
        const Lanes weights = bytes_at(w[r] + k);
        for (int i = 0; i < inputs; ++i) sums[r][i] = with_products(sums[r][i], in[i], weights);
    }
}

// sums[i][r] = <row r, input i>; inputs stand `width` bytes apart.
template <int rows, int inputs>
INT8_TARGET void row_products(const std::uint8_t* x, const std::int8_t* const* w, std::size_t width,
                              std::int32_t* sums) {
    static_assert(rows == 4);
    constexpr bool twice = inputs == 1;  // two sums side by side, as far as the registers go
    constexpr std::size_t step = sizeof(Lanes);
    Lanes even[rows][inputs], odd[rows][inputs];
    for (int r = 0; r < rows; ++r)
        for (int i = 0; i < inputs; ++i) even[r][i] = odd[r][i] = repeated(0);
    std::size_t k = 0;
    for (; twice && k + 2 * step <= width; k += 2 * step) {
        accumulate<rows, inputs>(x, w, width, k, even);
        accumulate<rows, inputs>(x, w, width, k + step, odd);
    }
    for (; k < width; k += step) accumulate<rows, inputs>(x, w, width, k, even);
    for (int i = 0; i < inputs; ++i) {
        Vector<std::int32_t> v[rows];
        for (int r = 0; r < rows; ++r)
            v[r] = reinterpret_cast<Vector<std::int32_t>>(twice ? sum_of(even[r][i], odd[r][i]) : even[r][i]);
        const __m128i four = folded(reinterpret_cast<Lanes>(
            exchanged_sum<2>(exchanged_sum<1>(v[0], v[1]), exchanged_sum<1>(v[2], v[3]))));
        std::memcpy(sums + i * rows, &four, sizeof four);
    }
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
    for (int q = 0; q < ADDED / 4; ++q) {
        std::uint32_t bytes;
        std::memcpy(&bytes, x + 4 * q, 4);
        four[q] = repeated(bytes);
    }
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

// The same of INT8_BLOCK rows, whose bytes from `column` on are `groups` columns of four.
INT8_TARGET inline void pack_rows(const std::int8_t* const* rows, std::size_t groups, std::size_t column,
                                  std::int8_t* packed) {
    constexpr std::size_t step = sizeof(Lanes), count = step / 4;
    for (std::size_t j = 0; j < INT8_BLOCK; j += count)
        for (std::size_t g = 0; g < groups; g += count) {
            Vector<std::int32_t> w[count];
            for (std::size_t r = 0; r < count; ++r) {
                w[r] = load<Vector<std::int32_t>>(rows[j + r] + column + 4 * g);
                prefetch(rows[(j + count + r) % INT8_BLOCK],
                         column + 4 * (g + (j + count < INT8_BLOCK ? 0 : groups)));
            }
            sparsact::SPARSACT_ISA::transpose<std::int32_t>(w);
            std::int8_t* to = packed + j / step * step * 4 * groups + j % step * 4;
            for (std::size_t r = 0; r < count; ++r) store(to + (g + r) * 4 * step, w[r]);
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
                std::uint32_t bytes;
                std::memcpy(&bytes, x + i * apart + 4 * g, 4);
                const Lanes four = repeated(bytes);
                for (int v = 0; v < 4; ++v) s[i][v] = with_products(s[i][v], four, w[v]);
            }
        }
        for (int i = 0; i < inputs; ++i)
            for (int v = 0; v < 4; ++v) put(sums + i * INT8_BLOCK + c + v * count, s[i][v]);
    }
}
#undef INT8_UNPACK

#else

template <int rows, int inputs>
void row_products(const std::uint8_t* x, const std::int8_t* const* w, std::size_t width, std::int32_t* sums) {
    for (int r = 0; r < rows; ++r)
        for (int i = 0; i < inputs; ++i) {
            std::int32_t sum = 0;
            for (std::size_t k = 0; k < width; ++k) sum += x[i * width + k] * w[r][k];
            sums[i * rows + r] = sum;
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

inline void pack_rows(const std::int8_t* const* rows, std::size_t groups, std::size_t column,
                      std::int8_t* packed) {
    for (std::size_t k = 0; k < 4 * groups; ++k)
        for (std::size_t j = 0; j < INT8_BLOCK; ++j) packed[k * INT8_BLOCK + j] = rows[j][column + k];
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

const Int8Products products = {
    {row_products<AT_ONCE, 1>, row_products<AT_ONCE, 2>, row_products<AT_ONCE, 3>, row_products<AT_ONCE, 4>},
    add_rows,
    in_order,
    pack_columns,
    pack_rows,
    {add_packed<1>, add_packed<2>, add_packed<3>, add_packed<4>},
};

}  // namespace INT8_WAY
}  // namespace
}  // namespace sparsact::SPARSACT_ISA
