// Command probe is what engine.sh starts in a container to learn whether an
// engine can run one: it does nothing and exits with status 0. It is built
// statically and imported as an image, so that the check needs no registry.
package main

func main() {}
