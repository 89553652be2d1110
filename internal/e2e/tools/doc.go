// Package tools holds tests of the providers claude and gemini as clients see
// them: the built program, over its pipes, on the local runtime with a fake CLI.
package tools
