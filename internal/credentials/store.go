package credentials

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Store makes data the login in the user's directory, which it makes as well.
// It is for a login that the user has just made, in a sandbox: whatever was
// there before goes, of another account too. data comes from the sandbox, so it
// must be a login by the source's own rule; nothing of it is quoted. The file
// gets [FileMode] and, for root, the owner of what it replaces, else of its
// directory; a symbolic link is not followed, and refused.
func Store(ctx context.Context, src Source, data []byte) error {
	if err := store(ctx, src, data); err != nil {
		return fmt.Errorf("store the %s login in %s: %w", src.Name, src.Directory(), err)
	}
	return nil
}

func store(ctx context.Context, src Source, data []byte) error {
	doc, err := decodeObject(data)
	if err != nil {
		return fmt.Errorf("what the CLI left %w", err)
	}
	if len(src.held(doc)) == 0 {
		return errors.New("what the CLI left holds no credential")
	}
	if err := os.MkdirAll(src.Directory(), 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(src.Directory())
	if err != nil {
		return err
	}
	defer root.Close()
	unlock, err := lockDirectory(ctx, root)
	if err != nil {
		return err
	}
	if unlock == nil {
		return errors.New("another mcp-agents holds its lock: try again")
	}
	defer unlock()
	old, err := root.Lstat(src.Credential)
	switch {
	case absent(err):
		old, err = root.Stat(".")
	case err == nil && !old.Mode().IsRegular():
		return fmt.Errorf("%s is %s: remove it first", src.Credential, kindOf(old))
	}
	if err != nil {
		return err
	}
	temp, err := (&Snapshot{source: src}).writeTemp(root, data, old)
	if err != nil {
		return err
	}
	defer root.Remove(temp) // after the rename there is nothing of that name
	if err := root.Rename(temp, src.Credential); err != nil {
		return err
	}
	syncDirectory(root)
	return nil
}

func kindOf(info fs.FileInfo) string {
	if info.Mode()&fs.ModeSymlink != 0 {
		return "a symbolic link"
	}
	return "not a regular file"
}
