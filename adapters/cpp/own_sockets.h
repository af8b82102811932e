// The sockets of this process, for middleware without settings for the marks of its packets.
#ifndef DECKWATCH_OWN_SOCKETS_H
#define DECKWATCH_OWN_SOCKETS_H

#include "deckwatch_carrier.h"

#include <dirent.h>
#include <sys/socket.h>

#include <cstdlib>

namespace deckwatch {

// Gives all IP sockets of this process the marks of the plan. An IPv6 socket may carry IPv4, and then takes the same
// mark. Call this when the middleware has opened its sockets.
inline void mark_own_sockets(const dw_plan* plan) {
    DIR* const open_files = opendir("/proc/self/fd");
    if (open_files == nullptr) return;
    while (const dirent* const entry = readdir(open_files)) {
        const int descriptor = std::atoi(entry->d_name);
        int domain = 0;
        socklen_t size = sizeof domain;
        // The entries "." and ".." become 0. A descriptor that is no socket has no domain.
        if (descriptor > 2 && getsockopt(descriptor, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 &&
            (domain == AF_INET || domain == AF_INET6)) {
            dw_mark_socket(plan, descriptor);
        }
    }
    closedir(open_files);
}

}  // namespace deckwatch

#endif
