//go:build embedinit

package images

import "embed"

// The Makefile puts both there, the Dockerfile that of its own platform.
//
//go:embed init/sandbox-init-linux-*
var inits embed.FS
