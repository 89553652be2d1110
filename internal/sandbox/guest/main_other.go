//go:build !linux

package guest

import (
	"fmt"
	"os"
)

// Main reports that sandboxes need Linux. On other systems the docker runtime
// runs the Linux init inside its containers.
func Main([]string) int {
	fmt.Fprintln(os.Stderr, "sandbox-init: needs Linux; use --runtime docker on this system")
	return 2
}
