package docker

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"

	"mcpagents/internal/sandbox"
)

// Fingerprint names what a container of spec is made of beyond the names in
// the spec: the image behind its reference, the directories behind its paths. A
// directory that was replaced since leaves an old container with the old one.
func (r *Runtime) Fingerprint(ctx context.Context, spec sandbox.Spec) (string, error) {
	image, err := r.Inspect(ctx, spec.Image)
	if err != nil {
		return "", err
	}
	parts := []string{image.ID}
	for _, m := range spec.Mounts {
		id, err := fileID(m.Path)
		if err != nil {
			return "", fmt.Errorf("look at a mounted directory: %w", err)
		}
		parts = append(parts, id)
	}
	return strings.Join(parts, " "), nil
}

// ConfinementKey names all of this engine that decides whether a sandbox inside
// a container of spec can work: the engine, the image, the seccomp profile and
// the user.
func (r *Runtime) ConfinementKey(ctx context.Context, spec sandbox.Spec) (string, error) {
	image, err := r.Inspect(ctx, spec.Image)
	if err != nil {
		return "", err
	}
	e, err := r.connect(ctx)
	if err != nil {
		return "", err
	}
	about, err := e.describe(ctx)
	if err != nil {
		return "", err
	}
	f, err := factsOf(about, spec)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s %s %s %s %s %x", about.Host, about.Version, about.Cgroup, image.ID, f.user, sha256.Sum256([]byte(f.seccomp))), nil
}
