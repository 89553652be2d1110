package app

// ownedByRoot is never true where there is no root.
func ownedByRoot([]string) bool { return false }
