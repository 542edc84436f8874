package expression

import (
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/dynamotest/internal/apierror"
	"github.com/millrace-dev/millrace/dynamotest/internal/value"
)

const updateKind = "UpdateExpression"

// Update is an update expression.
type Update struct {
	actions []action
	tree    tree // of the targets of the actions
}

// action writes to one place. Its section determines how.
type action struct {
	section     tokenKind
	target      path
	left, right operand
	operator    tokenKind // of SET: + or -, or none if there is only left
}

// ParseUpdate parses an update expression: the sections SET, REMOVE, ADD and DELETE, each at most
// once. Two actions must not write to the same place or to a part of it.
func ParseUpdate(source string, a *Attributes) (*Update, error) {
	var p parser
	if err := p.start(updateKind, source, a); err != nil {
		return nil, err
	}
	actions := make([]action, 0, 4)
	var repeated string
	var seen [tokenDelete + 1]bool
	for {
		section := p.token.kind
		if section < tokenSet || section > tokenDelete {
			p.unexpected()
			break
		}
		if seen[section] && repeated == "" {
			repeated = sectionName(section)
		}
		seen[section] = true
		p.advance()
		for {
			actions = append(actions, p.action(section))
			if !p.accept(tokenComma) {
				break
			}
		}
		if p.token.kind == tokenEnd {
			break
		}
	}
	if err := p.finishEarly(); err != nil {
		return nil, err
	}
	if repeated != "" {
		return nil, p.invalid("The \"%s\" section can only be used once in an update expression;", repeated)
	}
	targets := make([]path, len(actions))
	for i := range actions {
		targets[i] = actions[i].target
	}
	// DynamoDB reports faults of targets before those of values, which the parser has found
	// already.
	late := p.late
	p.late = nil
	if err := p.resolveAll(targets); err != nil {
		return nil, err
	}
	p.late = late
	if err := p.finishLate(); err != nil {
		return nil, err
	}
	return &Update{actions: actions, tree: newTree(targets)}, nil
}

func sectionName(section tokenKind) string {
	switch section {
	case tokenSet:
		return "SET"
	case tokenRemove:
		return "REMOVE"
	case tokenAdd:
		return "ADD"
	default:
		return "DELETE"
	}
}

func (p *parser) action(section tokenKind) action {
	// Of several faults in values, DynamoDB reports the one of the last action.
	before := p.late
	p.late = nil
	a := action{section: section, target: p.path()}
	switch section {
	case tokenSet:
		p.expect(tokenEqual)
		a.left, a.operator, a.right = p.newValue()
	case tokenAdd, tokenDelete:
		a.left = operand{value: p.value()}
		p.checkSectionType(section, a.left.value)
	}
	if p.late == nil {
		p.late = before
	}
	return a
}

// newValue parses the right-hand side of SET. An operand or the whole may be in parentheses.
func (p *parser) newValue() (left operand, operator tokenKind, right operand) {
	switch {
	case p.token.kind == tokenOpen:
		g := p.openGroup()
		left, operator, right = p.newValue()
		if p.closeGroup(g) {
			p.redundant = true
		}
		if operator != tokenEnd {
			return left, operator, right
		}
	case p.token.kind == tokenName && p.next.kind == tokenOpen:
		left = operand{call: p.call(false)}
	default:
		left = p.operand()
	}
	operator = p.token.kind
	if operator != tokenPlus && operator != tokenMinus {
		return left, tokenEnd, operand{}
	}
	name := p.text(p.operator(left))
	right = p.operand()
	p.checkTypes(name, []operand{left, right}, "N")
	return left, operator, right
}

func (p *parser) checkSectionType(section tokenKind, v types.AttributeValue) {
	var name string
	switch v.(type) {
	case *types.AttributeValueMemberN:
		if section == tokenAdd {
			return
		}
		name = "NUMBER"
	case *types.AttributeValueMemberS:
		name = "STRING"
	case *types.AttributeValueMemberB:
		name = "BINARY"
	case *types.AttributeValueMemberBOOL:
		name = "BOOLEAN"
	case *types.AttributeValueMemberNULL:
		name = "NULL"
	case *types.AttributeValueMemberL:
		name = "LIST"
	case *types.AttributeValueMemberM:
		name = "MAP"
	default: // a set, or nothing, which was recorded as a fault
		return
	}
	p.failLate("Incorrect operand type for operator or function; operator: %[1]s, operand type: %[2]s, typeSet: ALLOWED_FOR_%[1]s_OPERAND", sectionName(section), name)
}

// Attributes returns the names of the attributes that the update writes, completely or partly, each
// once.
func (u *Update) Attributes() []string { return u.tree.names() }

// PartsOf returns those attributes of which the update writes only a part.
func (u *Update) PartsOf() []string {
	var names []string
	for _, b := range u.tree.branches {
		if b.leaf == noLeaf {
			names = append(names, b.element.name)
		}
	}
	return names
}

// OnlyRemoves reports whether the update has no section but REMOVE and DELETE.
func (u *Update) OnlyRemoves() bool {
	return !slices.ContainsFunc(u.actions, func(a action) bool { return a.section == tokenSet || a.section == tokenAdd })
}

// Apply returns the item after the update. It does not change the given item. All actions see the
// original item, and lists with their original indexes. The item may be nil, or consist of its key.
func (u *Update) Apply(item value.Item) (value.Item, error) {
	changes := make([]change, len(u.actions))
	for i := range u.actions {
		var err error
		if changes[i], err = u.actions[i].change(item); err != nil {
			return nil, err
		}
	}
	return u.tree.writeMap(item, changes), nil
}

// Select returns the values at the paths that the update writes, nested as in a projection. For the
// item before the update this is the result of UPDATED_OLD, and for the item after it that of
// UPDATED_NEW.
//
// An element that was appended behind the end of a list is not at its path. After an element was
// removed, the next one may be at its path. DynamoDB ignores this too.
func (u *Update) Select(item value.Item) value.Item { return u.tree.projectItem(item) }

func invalidPath() error {
	return apierror.Validation("The document path provided in the update expression is invalid for update")
}

func wrongOperand() error {
	return apierror.Validation("An operand in the update expression has an incorrect data type")
}

func missingAttribute() error {
	return apierror.Validation("The provided expression refers to an attribute that does not exist in the item")
}
