// Package quorumview is what the leader of etcd says of the members, and how to ask for it.
package quorumview

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"k8s.io/client-go/rest"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control/endpoints"
)

// Path is where a server says how the members of etcd are, to administrators and viewers.
const Path = "/holdfast/v1/quorum"

// Status is how the members of etcd are, by the leader's word.
type Status struct {
	Leader   string   `json:"leader"`
	Want     int      `json:"want"`
	Spare    int      `json:"spare"`
	Degraded string   `json:"degraded,omitempty"`
	Members  []Member `json:"members"`
	// Standbys are servers that hold no member and ask for a seat.
	Standbys []string `json:"standbys,omitempty"`
	// Full are standbys that have no room for a member and do not become one.
	Full      []Full         `json:"full,omitempty"`
	Decisions []api.Decision `json:"decisions,omitempty"`
	// DatabaseSize is in bytes; LastBackup is the leader's own.
	DatabaseSize int64     `json:"databaseSize"`
	LastBackup   time.Time `json:"lastBackup,omitzero"`
}

// Member is one member.
type Member struct {
	Name  string `json:"name"`
	Voter bool   `json:"voter"`
	// Answers is set while the member does its part: a read by it holds all that was decided.
	// Problem says why it does not.
	Answers bool      `json:"answers"`
	Since   time.Time `json:"since"`
	Problem string    `json:"problem,omitempty"`
}

// Full is a standby whose disk has no room for a member of etcd. Problem says how much is free, how
// much is needed, and what to do.
type Full struct {
	Name    string `json:"name"`
	Problem string `json:"problem"`
}

// AllStandbys are the names of the standbys, with and without room for a member.
func (s *Status) AllStandbys() []string {
	names := slices.Clone(s.Standbys)
	for _, f := range s.Full {
		names = append(names, f.Name)
	}
	return names
}

// Problems are the reasons why members do not do their part and why standbys cannot become members,
// as "NAME: REASON".
func (s *Status) Problems() (all []string) {
	for _, m := range s.Members {
		if m.Problem != "" {
			all = append(all, m.Name+": "+m.Problem)
		}
	}
	for _, f := range s.Full {
		all = append(all, f.Name+": "+f.Problem)
	}
	return all
}

// ErrUnknown says that no server leads etcd: there is no quorum, or a leader is being elected.
var ErrUnknown = errors.New("no server knows the state of the members of etcd")

// ErrUnseen says that a server leads etcd since a moment ago, and can say in some seconds how the members are.
var ErrUnseen = errors.New("the server that leads etcd has just begun to lead, and has not observed the members yet: " +
	"ask again in some seconds")

// Ask asks the servers how the members of etcd are, with the rights of config: the one that it
// names, and, if that one does not lead, the others.
func Ask(ctx context.Context, config *rest.Config) (*Status, error) {
	status, err := askOne(ctx, config)
	if err == nil {
		return status, nil
	}
	servers, listErr := endpoints.List(ctx, config)
	if listErr != nil {
		return nil, fmt.Errorf("%w; %w", err, listErr)
	}
	var unseen error
	for _, server := range servers {
		other := rest.CopyConfig(config)
		other.Host = "https://" + server
		if status, err = askOne(ctx, other); err == nil {
			return status, nil
		}
		if errors.Is(err, ErrUnseen) {
			unseen = err // the others, which do not lead, say less
		}
	}
	return nil, fmt.Errorf("%w: %w", ErrUnknown, cmp.Or(unseen, err))
}

func askOne(ctx context.Context, config *rest.Config) (*Status, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+Path, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusServiceUnavailable {
		return nil, fmt.Errorf("%w (%s)", ErrUnseen, config.Host)
	}
	status := &Status{}
	if err := read(response, status); err != nil {
		return nil, fmt.Errorf("while asking %s for the quorum: %w", config.Host, err)
	}
	return status, nil
}

func read(response *http.Response, into any) error {
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the server answered %s: %.200s", response.Status, text)
	}
	return json.Unmarshal(text, into)
}
