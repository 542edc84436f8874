package api

import (
	_ "embed"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"github.com/millrace-dev/millrace/examples/internal/rest"
)

// Description is the OpenAPI description of the API, in YAML.
//
//go:embed openapi.yaml
var Description []byte

func serveDescription(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(Description)
}

// description checks requests.
type description struct {
	document *openapi3.T
	served   map[*openapi3.Operation]bool
}

func describe() (*description, error) {
	loader := openapi3.NewLoader()
	document, err := loader.LoadFromData(Description)
	if err == nil {
		err = document.Validate(loader.Context)
	}
	if err != nil {
		return nil, fmt.Errorf("openapi.yaml: %w", err)
	}
	return &description{document, map[*openapi3.Operation]bool{}}, nil
}

// operation returns a function that checks the requests of a pattern.
func (d *description) operation(pattern string) (func(*http.Request) error, error) {
	method, path, _ := strings.Cut(pattern, " ")
	path = strings.TrimSuffix(path, "{$}")
	item := d.document.Paths.Value(path)
	if item == nil || item.GetOperation(method) == nil {
		return nil, fmt.Errorf("openapi.yaml does not describe %s", pattern)
	}
	operation := item.GetOperation(method)
	d.served[operation] = true
	route := &routers.Route{Spec: d.document, Path: path, PathItem: item, Method: method, Operation: operation}
	return func(r *http.Request) error { return check(r, route) }, nil
}

// complete returns an error if an operation of the description is not served.
func (d *description) complete() error {
	for path, item := range d.document.Paths.Map() {
		for method, operation := range item.Operations() {
			if !d.served[operation] {
				return fmt.Errorf("openapi.yaml describes %s %s, which is not served", method, path)
			}
		}
	}
	return nil
}

func check(r *http.Request, route *routers.Route) error {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return rest.BadRequest("the query cannot be read: %w", err)
	}
	path, known, free := map[string]string{}, []string{}, false
	for _, of := range []openapi3.Parameters{route.PathItem.Parameters, route.Operation.Parameters} {
		for _, p := range of {
			switch p.Value.In {
			case openapi3.ParameterInPath:
				path[p.Value.Name] = r.PathValue(p.Value.Name)
			case openapi3.ParameterInQuery:
				known = append(known, p.Value.Name)
				// its properties are the parameters
				free = free || p.Value.Schema.Value.Type.Is(openapi3.TypeObject)
			}
		}
	}
	for name, values := range query {
		if free {
			break
		}
		// OpenAPI accepts other parameters, but with a misspelt filter the reply would contain too
		// much.
		if !slices.Contains(known, name) {
			return rest.BadRequest("%s is not a parameter here, only %q are", name, known)
		}
		if len(values) > 1 {
			return rest.BadRequest("%s is set more than once", name)
		}
	}
	err = openapi3filter.ValidateRequest(r.Context(), &openapi3filter.RequestValidationInput{
		Request: r, PathParams: path, QueryParams: query, Route: route,
		Options: &openapi3filter.Options{SkipSettingDefaults: true},
	})
	if err == nil {
		return nil
	}
	return reason(err)
}

// errMediaType reports that the body is not JSON.
var errMediaType = errors.New("the body must be application/json, and the Content-Type must say so")

// reason shortens the long error of the library to one sentence.
func reason(err error) error {
	var tooLarge *http.MaxBytesError
	var request *openapi3filter.RequestError
	switch {
	case errors.As(err, &tooLarge):
		return tooLarge
	case errors.Is(err, rest.ErrSlowBody):
		return rest.ErrSlowBody
	case !errors.As(err, &request):
		return rest.BadRequest("the request does not match the description: %w", err)
	case request.Parameter != nil:
		return rest.BadRequest("%s: %s", parameterLabel(request.Parameter), fault(request))
	case strings.HasPrefix(request.Reason, "header Content-Type"):
		return errMediaType
	}
	var schema *openapi3.SchemaError
	if errors.As(request.Err, &schema) && len(schema.JSONPointer()) > 0 {
		return rest.BadRequest("%s: %s", bodyLabel(request.RequestBody, schema), fault(request))
	}
	return rest.BadRequest("the body: %s", fault(request))
}

func fault(request *openapi3filter.RequestError) string {
	var schema *openapi3.SchemaError
	var parse *openapi3filter.ParseError
	switch {
	case errors.Is(request.Err, openapi3filter.ErrInvalidRequired), errors.Is(request.Err, openapi3filter.ErrInvalidEmptyValue):
		return "it is required"
	case errors.As(request.Err, &parse):
		if request.Parameter != nil {
			return fmt.Sprintf("it must be of type %s", request.Parameter.Schema.Value.Type.Slice())
		}
		return fmt.Sprintf("it must be a JSON document: %v", parse.RootCause())
	case errors.As(request.Err, &schema):
		return schemaFault(schema)
	}
	return request.Reason
}
