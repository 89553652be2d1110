//go:build !unix

package workspace

import (
	"errors"
	"fmt"
)

const openFlags = 0

// Owner returns errors.ErrUnsupported: files here have no numeric owner.
func Owner(path string) (uid, gid int, groupWritable bool, err error) {
	return 0, 0, false, fmt.Errorf("owner of %s: %w", path, errors.ErrUnsupported)
}
