// Package version holds the one version number that the programs report and
// that the images are tagged with.
package version

// Version is the release of mcp-agents in semantic versioning, without a
// leading "v". The build reads it from this line, so keep its form.
const Version = "0.1.0"
