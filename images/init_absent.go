//go:build !embedinit

package images

import "embed"

var inits embed.FS
