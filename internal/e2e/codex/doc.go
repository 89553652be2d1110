// Package codex holds tests of the Codex bridge as users run it: the built
// program, real sandboxes, and behind it the fake Codex or the real one with
// the scripted model.
package codex
