package helper

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"mcpagents/internal/provider/browser/lease"
)

var errRecord = errors.New("the lease helper wrote a malformed or mismatched ready record: " +
	"it must hold record_version=1, state=ready, a generation, and the local_cdp_port and browser_url that were asked for")

// parseRecord reads what a helper wrote about the lease that req asked for.
// Beside an error the Record is empty unless a lease can be told from it.
//
// Lines end with LF or CR. Those without a name before their first "=" are
// ignored, and nothing is trimmed. A name that comes twice makes the record
// ambiguous, whatever the name.
func parseRecord(text []byte, req lease.Request) (lease.Record, error) {
	fields := map[string]string{}
	twice := ""
	for line := range strings.FieldsFuncSeq(string(text), func(r rune) bool { return r == '\n' || r == '\r' }) {
		key, value, found := strings.Cut(line, "=")
		if !found || key == "" {
			continue
		}
		if _, seen := fields[key]; seen && twice == "" {
			twice = key
		}
		fields[key] = value
	}
	rec := lease.Record{Session: req.Session, Generation: fields["generation"],
		BrowserURL: "http://127.0.0.1:" + strconv.Itoa(req.LocalPort)}
	switch {
	case twice == "generation":
		return lease.Record{}, fmt.Errorf("duplicate browser lease record key: %.100s", twice)
	case rec.Generation == "":
		return lease.Record{}, errRecord
	case twice != "":
		return rec, fmt.Errorf("duplicate browser lease record key: %.100s", twice)
	case fields["record_version"] != "1", fields["state"] != "ready",
		fields["local_cdp_port"] != strconv.Itoa(req.LocalPort), fields["browser_url"] != rec.BrowserURL:
		return rec, errRecord
	}
	return rec, nil
}
