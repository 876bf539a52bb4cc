# Libraries of Stan programs. Runs in the home, whose own makefile says what every object of one set
# of flags must share, and how a model's object is compiled.
include makefile
.DEFAULT_GOAL := interface

# What does not depend on the model, compiled once.
INTERFACE := $(BUILD)/$(BRIDGE).o

.PHONY: interface always
interface: $(INTERFACE) $(PCH)

$(INTERFACE): $(wildcard $(BRIDGE)/*.cpp $(BRIDGE)/*.hpp) | $(PCH)
	@echo "compiling the interface of libraries"
	$(call write,$(COMPILE) -O3 $(WITH_PCH) $(INCLUDE) -I $(BRIDGE) -c $(BRIDGE)/interface.cpp)

# Without this the home's own rule for executables would serve, since its names match too.
%_model.so: %.hpp $(INTERFACE) $(NAMED_HEADER) | $(PCH)
	@echo '--- Compiling C++ code ---'
	$(find_user_header)
	$(model_object)
	@echo '--- Linking library ---'
	$(CXX) $(BASE) $(CXXFLAGS) -shared '$@.o' $(INTERFACE) $(LINK) -o '$@' || { $(RM_FILE) '$@.o'; exit 1; }
	@$(if $(KEEP_OBJECT),:,$(RM_FILE) '$@.o')

# Make does not know which files a program includes, nor what the last library was compiled with, so
# that a program is translated every time, with a line of the flags; a translation of the same text
# stays, and with it what was compiled from it. Includes are looked for beside the program too.
%.hpp: %.stan bin/stanc
	@part='$@'.part-$$$$; \
	bin/stanc $(STANCFLAGS) --include-paths='$(dir $<)' --o="$$part" '$<' && \
	printf '// %s\n' '$(subst ','\'',$(CURDIR)/$(BRIDGE) $(CXX) $(BASE) $(MODEL_ONLY) -O$(O) $(CXXFLAGS) $(CPPFLAGS) $(USER_HEADER))' >> "$$part" && \
	if cmp -s "$$part" '$@'; then $(RM_FILE) "$$part"; else mv -f "$$part" '$@'; fi

$(patsubst %_model.so,%.hpp,$(filter %_model.so,$(MAKECMDGOALS))): always

$(BRIDGE)/library.mk: ;
