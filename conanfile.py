# Conan 2 recipe of the library (headers and the embedded catalogue).
# Not checked: Conan was not at hand. libcsv has no recipe in ConanCenter and must be installed apart.
import re
from pathlib import Path

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout


class Servecap(ConanFile):
    name = "servecap"
    description = "Capacity and cost planning for serving large language models"
    license = "Apache-2.0"
    package_type = "static-library"
    settings = "os", "arch", "compiler", "build_type"
    exports_sources = "CMakeLists.txt", "cmake/*", "include/*", "data/*", "tools/*", "docs/*", "LICENSE", "README.md"
    requires = "eigen/3.4.0", "fmt/9.1.0", "nlohmann_json/3.11.2", "range-v3/0.12.0", "tl-expected/1.1.0"

    def set_version(self):
        text = (Path(self.recipe_folder) / "include/servecap/version.hpp").read_text()
        self.version = re.search(r'define SERVECAP_VERSION "([0-9.]+)"', text).group(1)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        for option in ("TOOLS", "TESTS", "EXAMPLES"):
            toolchain.cache_variables[f"SERVECAP_{option}"] = False
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()

    def package_info(self):
        self.cpp_info.libs = ["servecap_data"]
        self.cpp_info.set_property("cmake_find_mode", "none")  # the package's own servecapConfig.cmake
        self.cpp_info.builddirs = ["lib/cmake/servecap"]
