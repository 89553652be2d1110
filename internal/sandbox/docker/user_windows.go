package docker

func selfIdentity() identity { return identity{uid: -1, gid: -1} }

func workspaceOwner(string) owner { return owner{} }
