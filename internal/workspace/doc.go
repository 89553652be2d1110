// Package workspace decides which host directories agents may work in, and
// whether a working directory that a caller names lies inside one of them.
//
// A root that the operator names is taken at its word. The startup directory,
// which nobody named, is refused where sharing it would be a surprise: the
// file system's root, the home directory, system directories, and whatever
// holds a login or the socket of the container engine.
package workspace
