// Package monstore holds what the driver for Ceph and the agents both know of how the monitors of a cluster are recovered: names of
// commands and parameters, and what is found of a monitor's store.
package monstore

import (
	"encoding/json"
	"fmt"
	"strings"
)

const (
	// ParamRecover of a mon's Daemon says what its store is to be made of before it starts: an Order.
	ParamRecover = "recover"
	// VerbLook asks a mon's agent what the store of the mon, which is stopped, is worth. The answer is a State.
	VerbLook = "mon look"
	// VerbNewest asks for the newest OSD map that a stopped OSD has; the answer is its number.
	VerbNewest = "osd newest-map"
	// VerbGive has a stopped OSD write the maps that it has where the mon of ParamMon, on the same host, finds them.
	VerbGive = "osd give-maps"
	// ParamMon is the directory of a mon's Daemon among those of its host.
	ParamMon = "mon"
	// ParamToken names the recovery.
	ParamToken = "token"
)

// Way says what a mon's store is made of.
type Way string

// The ways.
const (
	// Alone: of its own store, with the others taken out of the map.
	Alone Way = "alone"
	// FromOSDs: of the maps that OSDs of the host gave, and the keys in its keyring.
	FromOSDs Way = "osds"
	// Back: the store that was there before is put back.
	Back Way = "back"
)

// Order is the value of ParamRecover. Each is carried out once.
type Order struct {
	// Token names the recovery.
	Token string
	Way   Way
}

// String is what ParseOrder reads.
func (o Order) String() string { return o.Token + " " + string(o.Way) }

// ParseOrder reads the value of ParamRecover. The token becomes part of a path.
func ParseOrder(text string) (Order, error) {
	token, way, _ := strings.Cut(text, " ")
	o := Order{token, Way(way)}
	if token == "" || strings.ContainsAny(token, "/.") || o.Way != Alone && o.Way != FromOSDs && o.Way != Back {
		return o, fmt.Errorf("%q is not a valid request to recover a mon's store", text)
	}
	return o, nil
}

// State is what the store of a mon is worth.
type State struct {
	// Problem says why the store cannot be used at all; empty when it can be read.
	Problem string `json:"problem,omitempty"`
	// Joined is set when the mon was in a quorum with this store. One that never was knows nothing.
	Joined bool `json:"joined,omitempty"`
	// Syncing is set when the mon was getting everything from others: what it has is not whole.
	Syncing bool `json:"syncing,omitempty"`
	// Version is how far the store is: of two that are whole the one with the larger number knows more.
	Version uint64 `json:"version,omitempty"`
}

// Whole says whether the mon can go on with the store.
func (s State) Whole() bool { return s.Problem == "" && s.Joined && !s.Syncing && s.Version > 0 }

// String says it in a sentence.
func (s State) String() string {
	switch {
	case s.Problem != "":
		return s.Problem
	case !s.Joined || s.Version == 0:
		return "it is new and empty"
	case s.Syncing:
		return "it was cut off while it got everything from the others"
	}
	return fmt.Sprintf("it is whole, as of version %d", s.Version)
}

// Encode is what Decode reads.
func (s State) Encode() string {
	text, _ := json.Marshal(s) // strings, numbers and truths
	return string(text)
}

// Decode reads the answer to VerbLook.
func Decode(text string) (s State, err error) {
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return s, fmt.Errorf("reading the report on a mon's store: %w", err)
	}
	return s, nil
}
