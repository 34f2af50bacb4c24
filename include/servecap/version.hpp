// servecap: the version, in one place (CMake reads it from here)
// SPDX-License-Identifier: Apache-2.0

#pragma once

#define SERVECAP_VERSION_MAJOR 0
#define SERVECAP_VERSION_MINOR 1
#define SERVECAP_VERSION_PATCH 0
#define SERVECAP_VERSION "0.1.0"
