#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "bind.hpp"
#include "fingerprint.hpp"

namespace nb = nanobind;

namespace sparsact {

void bind_fingerprint(nb::module_& module) {
    using Places = std::vector<std::pair<std::uintptr_t, std::size_t>>;
    nb::class_<Fingerprint>(module, "Fingerprint")
        .def(
            "__init__",
            [](Fingerprint* self, const Places& places) {
                nb::gil_scoped_release unlocked;
                std::vector<Region> regions;
                for (auto [address, bytes] : places)
                    regions.push_back({reinterpret_cast<const unsigned char*>(address), bytes});
                new (self) Fingerprint(std::move(regions));
            },
            nb::arg("places"))
        .def_prop_ro("stripes", &Fingerprint::stripes)
        .def("next", &Fingerprint::next)
        .def("all", &Fingerprint::all, nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace sparsact
