package serves

import "encoding/json"

// ServiceMap is the part of Ceph's map of services, in the answer to 'status', that matters here.
type ServiceMap struct {
	Services map[string]struct {
		Daemons map[string]json.RawMessage `json:"daemons"`
	} `json:"services"`
}

// Listed are the ids of the daemons in the map, by their types. Ceph's keys are numbers, or the ids themselves.
func (m *ServiceMap) Listed() map[string][]string {
	listed := map[string][]string{}
	for kind, service := range m.Services {
		for key, text := range service.Daemons {
			var daemon struct {
				Metadata struct {
					ID string `json:"id"`
				} `json:"metadata"`
			}
			if json.Unmarshal(text, &daemon) != nil {
				continue // the summary, a text
			}
			listed[kind] = append(listed[kind], key)
			if daemon.Metadata.ID != "" {
				listed[kind] = append(listed[kind], daemon.Metadata.ID)
			}
		}
	}
	return listed
}
