package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

// save makes auth.json what kind says.
func (c *cli) save(kind string) error {
	auth := credential{Tokens: new(tokens)}
	*auth.Tokens = issue(2, time.Hour)
	good, _ := json.Marshal(auth)
	switch kind {
	case "good":
		return c.replace(good)
	case "half":
		return c.replace(good[:len(good)/2])
	case "empty":
		return c.replace(nil)
	case "text":
		return c.replace([]byte("not JSON"))
	case "blank":
		auth.Tokens.Refresh = ""
		blank, _ := json.Marshal(auth)
		return c.replace(blank)
	case "account":
		auth.Tokens.Account = "another"
		other, _ := json.Marshal(auth)
		return c.replace(other)
	case "big": // good but for its length
		return c.replace([]byte(strings.Repeat(" ", 2<<20) + string(good)))
	case "link": // to a file that is good
		elsewhere := c.path + ".elsewhere"
		if err := os.WriteFile(elsewhere, good, 0o600); err != nil {
			return err
		}
		if err := os.RemoveAll(c.path); err != nil {
			return err
		}
		return os.Symlink(elsewhere, c.path)
	case "directory":
		if err := os.RemoveAll(c.path); err != nil {
			return err
		}
		return os.Mkdir(c.path, 0o700)
	case "pipe":
		if err := os.RemoveAll(c.path); err != nil {
			return err
		}
		return makePipe(c.path)
	}
	return fmt.Errorf("unknown kind %q", kind)
}

// replace puts data in the file's place, whatever that is.
func (c *cli) replace(data []byte) error {
	temp := c.path + ".new"
	if err := os.WriteFile(temp, data, 0o600); err != nil {
		return err
	}
	if err := os.RemoveAll(c.path); err != nil {
		return err
	}
	return os.Rename(temp, c.path)
}
