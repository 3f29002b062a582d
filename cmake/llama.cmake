# llama.cpp: prebuilt shared libraries (npm) and the headers of the same tag; ENGINE.md and docs/adr say why. Gives
#   llama::base   ggml-base alone: tensors and GGUF files (the trainer and the test-model generator)
#   llama::llama  the runtime, for `engine` only
#   llama::common chat templates, for `engine` only
#   MOLLY_LLAMA_LIBRARIES, the folder that also holds the CPU backends
set(llama_tag v0.4.0)
if(DEFINED ENV{MOLLY_DEPS})
  set(llama_dependencies $ENV{MOLLY_DEPS})
else()
  set(llama_dependencies $ENV{HOME}/.cache/molly/deps)
endif()

find_path(MOLLY_LLAMA_SOURCE include/llama.h PATHS ${llama_dependencies}/llama.cpp-${llama_tag} NO_DEFAULT_PATH
          DOC "llama.cpp's headers")
find_path(MOLLY_LLAMA_LIBRARIES libllama.${llama_tag}.so
          PATHS ${llama_dependencies}/llama.cpp-${llama_tag}-built
                ${PROJECT_SOURCE_DIR}/node_modules/@node-llama-cpp/linux-x64/bins/linux-x64
          NO_DEFAULT_PATH DOC "llama.cpp's shared libraries")
if(NOT MOLLY_LLAMA_SOURCE OR NOT MOLLY_LLAMA_LIBRARIES)
  message(FATAL_ERROR "llama.cpp ${llama_tag} is not here (headers: ${MOLLY_LLAMA_SOURCE}; libraries: "
                      "${MOLLY_LLAMA_LIBRARIES}). Run tools/setup, then configure again.")
endif()

function(molly_llama_library name file)
  add_library(llama::${name} SHARED IMPORTED GLOBAL)
  set_target_properties(llama::${name} PROPERTIES
    IMPORTED_LOCATION ${MOLLY_LLAMA_LIBRARIES}/${file}
    INTERFACE_INCLUDE_DIRECTORIES "${ARGN}")
endfunction()
molly_llama_library(base libggml-base.so ${MOLLY_LLAMA_SOURCE}/ggml/include)
molly_llama_library(ggml libggml.${llama_tag}.so ${MOLLY_LLAMA_SOURCE}/ggml/include)
molly_llama_library(llama libllama.${llama_tag}.so ${MOLLY_LLAMA_SOURCE}/include)
molly_llama_library(common libllama-common.so ${MOLLY_LLAMA_SOURCE}/common ${MOLLY_LLAMA_SOURCE}/vendor)
set_property(TARGET llama::ggml PROPERTY INTERFACE_LINK_LIBRARIES llama::base)
set_property(TARGET llama::llama PROPERTY INTERFACE_LINK_LIBRARIES llama::ggml)
set_property(TARGET llama::common PROPERTY INTERFACE_LINK_LIBRARIES llama::llama)

# A tiny chat model with random weights, made in the build folder: tests and the first run use it.
add_executable(make_test_model ${PROJECT_SOURCE_DIR}/tools/make_test_model.cc)
target_link_libraries(make_test_model PRIVATE llama::base)
set(MOLLY_TEST_MODEL ${PROJECT_BINARY_DIR}/models/molly-test.gguf)
add_custom_command(OUTPUT ${MOLLY_TEST_MODEL}
  COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/models
  COMMAND make_test_model ${MOLLY_TEST_MODEL}
  DEPENDS make_test_model VERBATIM COMMENT "making the test model")
add_custom_target(test_model ALL DEPENDS ${MOLLY_TEST_MODEL})
