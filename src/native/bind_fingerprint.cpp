#include "bind.hpp"
#include "fingerprint.hpp"

namespace nb = nanobind;

namespace sparsact {

namespace {

const unsigned char* at(std::uintptr_t address) { return reinterpret_cast<const unsigned char*>(address); }

}  // namespace

void bind_fingerprint(nb::module_& module) {
    nb::class_<Fingerprint>(module, "Fingerprint")
        .def(
            "__init__",
            [](Fingerprint* self, std::uintptr_t address, std::size_t bytes) {
                nb::gil_scoped_release unlocked;
                new (self) Fingerprint(at(address), bytes);
            },
            nb::arg("address"), nb::arg("bytes"))
        .def_prop_ro("stripes", &Fingerprint::stripes)
        .def("next", [](Fingerprint& self, std::uintptr_t address) { return self.next(at(address)); },
             nb::arg("address"))
        .def(
            "all",
            [](const Fingerprint& self, std::uintptr_t address) {
                nb::gil_scoped_release unlocked;
                return self.all(at(address));
            },
            nb::arg("address"));
}

}  // namespace sparsact
