package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// unheard is what is shown as the state of a Daemon whose host is silent.
const unheard = "Unknown"

// unheardMarker marks the Daemons in tables whose hosts' agents are disconnected: their objects have
// what was reported last.
type unheardMarker struct {
	g  *globals
	by http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (m unheardMarker) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := m.by.RoundTrip(r)
	isTable := strings.Contains(r.Header.Get("Accept"), "as=Table")
	asked := isTable && slices.Contains(strings.Split(r.URL.Path, "/"), "daemons")
	if err != nil || !asked || response.StatusCode != http.StatusOK {
		return response, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("while reading the server's answer: %w", err)
	}
	var t metav1.Table
	if json.Unmarshal(body, &t) == nil && t.Kind == "Table" {
		if err := markUnheard(r.Context(), m.g, &t); err != nil {
			return nil, err
		}
		if body, err = json.Marshal(&t); err != nil {
			return nil, err
		}
	}
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	response.Header.Del("Content-Length")
	return response, nil
}

func markUnheard(ctx context.Context, g *globals, t *metav1.Table) error {
	host, state, message := columnOf(t, "Host"), columnOf(t, "State"), columnOf(t, "Message")
	if len(t.Rows) == 0 || min(host, state, message) < 0 {
		return nil
	}
	c, err := g.client()
	if err != nil {
		return err
	}
	var hosts api.HostList
	if err := c.List(ctx, &hosts); err != nil {
		return fmt.Errorf("while reading hosts: %w", err)
	}
	silent := silentTexts(hosts.Items, time.Now())
	for _, row := range t.Rows {
		if text, last := silent[fmt.Sprint(row.Cells[host])], row.Cells[state]; text != "" && last != nil {
			row.Cells[state], row.Cells[message] = unheard, fmt.Sprintf("last reported %v; %s", last, text)
		}
	}
	return nil
}

// silentTexts says of each host whose agent is silent since when.
func silentTexts(hosts []api.Host, now time.Time) map[string]string {
	texts := map[string]string{}
	for i := range hosts {
		if h := &hosts[i]; !h.AgentHeard() {
			texts[h.Name] = fmt.Sprintf("host %s is %s", h.Name, agentText(h, now))
		}
	}
	return texts
}

// columnOf is the place of a column, or -1.
func columnOf(t *metav1.Table, name string) int {
	return slices.IndexFunc(t.ColumnDefinitions, func(c metav1.TableColumnDefinition) bool { return strings.EqualFold(c.Name, name) })
}
