package docker

import "os"

func selfIdentity() identity { return identity{uid: -1, gid: -1} }

func workspaceOwner(string) owner { return owner{} }

// fileID cannot tell files apart by path here; the expiry of spares does.
func fileID(path string) (string, error) {
	_, err := os.Stat(path)
	return path, err
}
