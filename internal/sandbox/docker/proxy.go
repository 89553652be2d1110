package docker

import (
	"net"
	"regexp"
	"strings"
)

// hostName is this machine as a sandbox on a bridge sees it.
const hostName = "host.docker.internal"

// proxyShape is a proxy's address: scheme and credentials, host, and the rest.
var proxyShape = regexp.MustCompile(`^((?:[A-Za-z][A-Za-z0-9+.-]*://)?(?:[^/@]*@)?)(\[[0-9A-Fa-f:.%]+\]|[^/:@\[\]]+)((?::[0-9]*)?(?:/.*)?)$`)

// sandboxProxy is a proxy's address as a sandbox reaches it: in a network of
// its own the loopback is its own, so that a proxy there is looked for on this
// machine. Such a proxy must listen on the engine's bridge too. The address may
// hold a password: it is never logged.
func sandboxProxy(address, network string) string {
	if !reachesHost(network) {
		return address
	}
	m := proxyShape.FindStringSubmatch(address)
	if m == nil || !isLoopback(strings.Trim(m[2], "[]")) {
		return address
	}
	return m[1] + hostName + m[3]
}

func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// reachesHost reports whether a sandbox on a network has an address for this
// machine: on the default bridge and on named networks.
func reachesHost(network string) bool {
	return network != "none" && network != "host" && !strings.HasPrefix(network, "container:")
}
