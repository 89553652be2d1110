package docker

import (
	"context"
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
