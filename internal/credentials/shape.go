package credentials

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxDepth bounds the nesting of a credential; real ones have two levels.
const maxDepth = 32

// checkReplacement judges data, which a sandbox handed back, as a successor of the
// credential old. The error is the reason of a refusal and quotes neither of them.
//
//   - data is one JSON object of at most [MaxFile] bytes, without repeated members (parsers
//     disagree about which one counts) and without invalid UTF-8;
//   - each secret that old holds is still there, of the same type: never a blank over a full
//     one. Where old has no member that the source knows, this holds for its top level;
//   - a blank old takes only a login;
//   - it is the same account's.
func (s Source) checkReplacement(old, data []byte) error {
	next, err := decodeObject(data)
	if err != nil {
		return err
	}
	// An unreadable old file has nothing to protect: then prev stays nil.
	prev, _ := decodeObject(old)
	protected := s.held(prev)
	if len(protected) == 0 {
		for name, value := range prev {
			if !blank(value) {
				protected = append(protected, []string{name})
			}
		}
	}
	if len(protected) == 0 && len(s.held(next)) == 0 {
		return errors.New("it holds no credential")
	}
	for _, path := range protected {
		if value := lookup(next, path); blank(value) || kind(value) != kind(lookup(prev, path)) {
			return errors.New("it would blank a credential that the canonical file holds")
		}
	}
	if s.Account != "" {
		path := strings.Split(s.Account, ".")
		was, is := lookup(prev, path), lookup(next, path)
		if !blank(was) && !blank(is) && !reflect.DeepEqual(was, is) {
			return errors.New("it belongs to another account")
		}
	}
	return nil
}

// held are the paths of the source's secrets that doc has a value for.
func (s Source) held(doc map[string]any) [][]string {
	var paths [][]string
	for _, dotted := range s.Secrets {
		if path := strings.Split(dotted, "."); !blank(lookup(doc, path)) {
			paths = append(paths, path)
		}
	}
	return paths
}

func lookup(doc map[string]any, path []string) any {
	value := any(doc)
	for _, name := range path {
		object, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = object[name]
	}
	return value
}

// blank: a value that says nothing, however deeply it is wrapped.
func blank(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case string:
		return strings.TrimSpace(v) == ""
	case []any:
		return !slices.ContainsFunc(v, func(e any) bool { return !blank(e) })
	case map[string]any:
		for _, e := range v {
			if !blank(e) {
				return false
			}
		}
		return true
	}
	return false
}

func kind(value any) string { return fmt.Sprintf("%T", value) }

// decodeObject parses a credential. Its errors read as the end of "auth.json ...".
func decodeObject(data []byte) (map[string]any, error) {
	if len(data) > MaxFile {
		return nil, errTooLong
	}
	if !utf8.Valid(data) || !json.Valid(data) {
		return nil, errors.New("is not valid JSON")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	value, err := decodeValue(dec, maxDepth)
	if err != nil {
		return nil, err
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("is not a JSON object")
	}
	return object, nil
}

// decodeValue reads one value token by token, because only tokens show repeated members.
func decodeValue(dec *json.Decoder, depth int) (any, error) {
	token, err := dec.Token()
	if err != nil {
		return nil, errors.New("is not valid JSON")
	}
	delim, ok := token.(json.Delim)
	if !ok {
		return token, nil
	}
	if depth == 0 {
		return nil, fmt.Errorf("is nested deeper than %d levels", maxDepth)
	}
	if delim == '[' {
		return decodeArray(dec, depth-1)
	}
	return decodeMembers(dec, depth-1)
}

func decodeArray(dec *json.Decoder, depth int) (any, error) {
	array := []any{}
	for dec.More() {
		value, err := decodeValue(dec, depth)
		if err != nil {
			return nil, err
		}
		array = append(array, value)
	}
	return array, closing(dec)
}

func decodeMembers(dec *json.Decoder, depth int) (any, error) {
	object := map[string]any{}
	for dec.More() {
		token, err := dec.Token()
		name, ok := token.(string)
		if err != nil || !ok {
			return nil, errors.New("is not valid JSON")
		}
		if _, repeated := object[name]; repeated {
			return nil, errors.New("has a repeated member")
		}
		if object[name], err = decodeValue(dec, depth); err != nil {
			return nil, err
		}
	}
	return object, closing(dec)
}

func closing(dec *json.Decoder) error {
	_, err := dec.Token()
	return err
}
